// Diaries: a small domain of many event types, with snapshots and an inline projector.
#pragma once

#include <stela/framework.hpp>
#include <stela/projections.hpp>

#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::test {

inline constexpr std::array<std::string_view, 8> page_names{
    "page.begun",  "page.written", "page.torn",    "page.burnt",
    "page.copied", "page.signed",  "page.blotted", "page.sealed"};

template <int n>
struct Page {
  static constexpr EventType event_type{page_names[n], 1, should_publish};
  std::string text;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text));
  }
};
using AnyPage = EventSet<Page<0>, Page<1>, Page<2>, Page<3>, Page<4>, Page<5>, Page<6>, Page<7>>;

template <int n>
std::string shown(const Page<n>& page) {
  return std::to_string(n) + ':' + page.text;
}

struct DiaryState {
  static constexpr int snapshot_version = 1;
  std::vector<std::string> pages;

  template <int n>
  void apply(const Page<n>& page) {
    pages.push_back(shown(page));
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(pages));
  }
};

class Diary : public AggregateRoot<DiaryState, AnyPage> {
 public:
  static constexpr std::string_view category = "diary";
  static constexpr auto snapshot_policy = SnapshotPolicy::every(2);
  using AggregateRoot::AggregateRoot;

  void write(int type, const std::string& text) {
    [&]<int... n>(std::integer_sequence<int, n...>) {
      (..., (n == type ? record(Page<n>{text}) : void()));
    }
    (std::make_integer_sequence<int, static_cast<int>(page_names.size())>{});
  }
};

/// Copies all types but three into a table, inline.
class Copies {
 public:
  static constexpr ProjectorType projector_type{"copies", 1};
  using Events = EventSet<Page<0>, Page<1>, Page<2>, Page<4>, Page<6>>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {copies} (at INTEGER PRIMARY KEY, page TEXT NOT NULL) STRICT");
  }
  template <int n>
  void project(ReadModel& model, const Recorded<Page<n>>& page) {
    model.execute("INSERT INTO {copies} VALUES (?1, ?2)", page.sequence().value(), shown(*page));
  }
};

}  // namespace stela::test
