// A domain whose codecs one file compiles.
#pragma once

#include <stela/framework.hpp>
#include <stela/framework/extern_templates.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace bank {

struct OpenedV1 {
  static constexpr stela::EventType event_type{"account.opened", 1, stela::should_publish};
  std::string owner;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(owner));
  }
};

struct Opened {
  static constexpr stela::EventType event_type{"account.opened", 2, stela::should_publish};
  using Supersedes = OpenedV1;
  static Opened upcast(OpenedV1 old) { return {std::move(old.owner), {"upcast"}}; }
  std::string owner;
  std::vector<std::string> notes;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(owner), CEREAL_NVP(notes));
  }
};

struct Paid {
  static constexpr stela::EventType event_type{"account.paid", 1, stela::local};
  std::int64_t cents = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents));
  }
};

/// Nobody's but the bank's.
struct RateQuoted {
  static constexpr stela::EventType event_type{"bank.rate_quoted", 1, stela::local};
  std::int64_t basis_points = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(basis_points));
  }
};

struct Balance {
  static constexpr int snapshot_version = 1;
  std::string owner;
  std::int64_t cents = 0;
  void apply(const Opened& event) { owner = event.owner; }
  void apply(const Paid& event) { cents += event.cents; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(owner), CEREAL_NVP(cents));
  }
};

class Account : public stela::AggregateRoot<Balance, stela::EventSet<Opened, Paid>> {
 public:
  static constexpr std::string_view category = "account";
  static constexpr auto snapshot_policy = stela::SnapshotPolicy::every(2);
  using AggregateRoot::AggregateRoot;
  void open(std::string owner) { record(Opened{std::move(owner), {"new"}}); }
  void pay(std::int64_t cents) { record(Paid{cents}); }
};

}  // namespace bank

STELA_EXTERN_AGGREGATE(bank::Account);
STELA_EXTERN_EVENT(bank::Opened);
STELA_EXTERN_EVENT(bank::RateQuoted);
