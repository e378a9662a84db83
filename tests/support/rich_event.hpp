// An event with a field of almost every kind, for round trips, golden files and fuzzing.
#pragma once

#include <stela/framework.hpp>

#include <cereal/types/array.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <array>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace stela::test {

struct RichBasket {
  static constexpr std::string_view category = "basket";
};

enum class Grade : std::int8_t { low = -1, none, high };

enum class Channel : std::uint8_t { web, shop };
constexpr auto enum_names(Channel) {
  return std::array{std::pair{Channel::web, "web"}, std::pair{Channel::shop, "shop"}};
}

struct RichLine {
  std::string sku;
  std::int32_t quantity = 0;
  std::optional<double> discount;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(sku), CEREAL_NVP(quantity), CEREAL_NVP(discount));
  }
  friend bool operator==(const RichLine&, const RichLine&) = default;
};

/// A tree as deep as its bytes say.
struct RichTree {
  std::string label;
  std::vector<RichTree> children;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(label), CEREAL_NVP(children));
  }
  friend bool operator==(const RichTree&, const RichTree&) = default;
};

struct RichNumbers {
  bool flag = false;
  std::int8_t tiny = 0;
  std::uint16_t small = 0;
  std::int64_t wide = 0;
  std::uint64_t natural = 0;
  double real = 0;
  float rough = 0;
  std::array<std::uint16_t, 3> triple{};
  std::bitset<12> bits;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(flag), CEREAL_NVP(tiny), CEREAL_NVP(small), CEREAL_NVP(wide),
            CEREAL_NVP(natural), CEREAL_NVP(real), CEREAL_NVP(rough), CEREAL_NVP(triple),
            CEREAL_NVP(bits));
  }
  friend bool operator==(const RichNumbers&, const RichNumbers&) = default;
};

struct RichContainers {
  std::vector<RichLine> lines;
  std::vector<bool> marks;
  std::map<std::string, std::int64_t> by_name;
  std::map<std::int32_t, std::string> by_number;
  std::map<Id<RichBasket>, RichLine> by_id;
  std::multimap<std::string, int> many;
  std::unordered_map<std::string, std::vector<std::uint8_t>> blobs;
  std::unordered_map<std::int32_t, double> readings;
  std::unordered_set<std::string> tags;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(lines), CEREAL_NVP(marks), CEREAL_NVP(by_name), CEREAL_NVP(by_number),
            CEREAL_NVP(by_id), CEREAL_NVP(many), CEREAL_NVP(blobs), CEREAL_NVP(readings),
            CEREAL_NVP(tags));
  }
  friend bool operator==(const RichContainers&, const RichContainers&) = default;
};

struct RichEvent {
  static constexpr EventType event_type{"test.rich", 1, should_publish};

  using Either = std::variant<std::monostate, std::int64_t, std::string, RichLine>;

  RichNumbers numbers;
  std::string text;
  std::optional<std::string> note;
  RichContainers containers;
  Either either;
  std::pair<int, std::string> pair;
  std::tuple<int, std::string, bool> tuple;
  RichTree tree;
  Timestamp at{};
  std::chrono::system_clock::time_point precisely{};
  std::chrono::milliseconds took{};
  Grade grade = Grade::none;
  Channel channel = Channel::web;
  Id<RichBasket> basket;
  Uuid request;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(numbers), CEREAL_NVP(text), CEREAL_NVP(note), CEREAL_NVP(containers),
            CEREAL_NVP(either), CEREAL_NVP(pair), CEREAL_NVP(tuple), CEREAL_NVP(tree),
            CEREAL_NVP(at), CEREAL_NVP(precisely), CEREAL_NVP(took), CEREAL_NVP(grade),
            CEREAL_NVP(channel), CEREAL_NVP(basket), CEREAL_NVP(request));
  }
  friend bool operator==(const RichEvent&, const RichEvent&) = default;
};

/// A fixed event with a value in every field.
inline RichEvent sample_rich_event() {
  using namespace std::chrono_literals;
  RichEvent event;
  event.numbers = {true,
                   -128,
                   65535,
                   -9223372036854775807,
                   18446744073709551615U,
                   0.1,
                   -1.5F,
                   {1, 2, 3},
                   std::bitset<12>{0b1010'0000'1111}};
  event.text = "quotes \" \\ control \x01 \n umlauts äöü 日本 \U0001F600";
  event.note = "ring twice";
  event.containers.lines = {{"sku-1", 2, 0.05}, {"sku-2", -1, std::nullopt}};
  event.containers.marks = {true, false, true};
  event.containers.by_name = {{"", 0}, {"a", -1}, {"b", 9223372036854775807}};
  event.containers.by_number = {{-5, "minus"}, {7, ""}};
  event.containers.by_id = {{Id<RichBasket>::from("k1"), {"x", 1, {}}}};
  event.containers.many = {{"m", 2}, {"m", 1}};
  event.containers.blobs = {{"one", {0, 255}}, {"two", {}}, {"three", {7}}};
  event.containers.readings = {{2, 0.5}, {-1, 1e300}, {10, 5e-324}};
  event.containers.tags = {"c", "a", "b"};
  event.either = RichLine{"alt", 3, 1.0};
  event.pair = {42, "pair"};
  event.tuple = {-1, "tuple", true};
  event.tree = {"root", {{"leaf", {}}, {"branch", {{"twig", {}}}}}};
  event.at = Timestamp{std::chrono::sys_days{2026y / 11 / 21} + 11h + 34min + 1us};
  event.precisely = std::chrono::sys_days{1969y / 12 / 31} + 23h + 999999999ns;
  event.took = -1500ms;
  event.grade = Grade::high;
  event.channel = Channel::shop;
  event.basket = Id<RichBasket>::from("jane@example.org");
  event.request = *Uuid::parse("0190d3c0-1234-7000-8000-00000000abcd");
  return event;
}

}  // namespace stela::test

// Compiled once for all users, because an event with so many fields compiles slowly.
namespace stela::codec {

extern template void encode<test::RichEvent>(Codec, const test::RichEvent&, std::string&, Sealing*);
extern template void decode<test::RichEvent>(Codec, std::string_view, test::RichEvent&,
                                             const Opening*);

}  // namespace stela::codec
