// A shop with two guests and their keys, for the tests of `stela privacy`.
#pragma once

#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/outbox.hpp>
#include <stela/privacy.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace stela::test::privacy {

struct Guest {
  static constexpr std::string_view category = "guest";
};
struct Moved {
  static constexpr EventType event_type{"guest.moved", 1, local};
  Personal<std::string> address;
  std::int32_t since = 0;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(address), CEREAL_NVP(since));
  }
};
struct InvoiceSent {
  static constexpr EventType event_type{"guest.invoice_sent", 1, local};
  Personal<std::string> address;
  static constexpr auto subject = personal(stream_is_subject, "invoices");
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(address));
  }
};
struct GiftSent {
  static constexpr EventType event_type{"gift.sent", 1, local};
  Id<Guest> from, to;
  Personal<std::string, &GiftSent::to> address;
  Personal<std::string, &GiftSent::from> greeting;
  static constexpr auto subject = &GiftSent::to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(from), CEREAL_NVP(to), CEREAL_NVP(address), CEREAL_NVP(greeting));
  }
};

/// What a message that somebody forged may be once it is imported.
struct NoErasure {
  static constexpr EventType event_type{"stela.forgotten", 1, local};
  template <class Archive>
  void serialize(Archive& /*archive*/) {}
};

inline const Id<Guest> margaret = Id<Guest>::from("m1");
inline const Id<Guest> ann = Id<Guest>::from("a1");

class ToolPrivacy : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(dir_.file("keys"));
    Keys keys = open_keys(keys_, {.erasures = erasures_});
    Store store = stela::open(db_, {.keys = &keys});
    const Outbox outbox{store};
    UnitOfWork unit{store};
    const auto any = ExpectedVersion::any();
    unit.append(margaret.stream(), any, Moved{"Elm St 1", 1970});
    unit.append(ann.stream(), any, Moved{"Oak St 2", 1980});
    unit.append(margaret.stream(), any, InvoiceSent{"Elm St 1"});
    unit.append(StreamId::parse("gift-1"), any, GiftSent{ann, margaret, "Elm St 9", "Love, Ann"});
    unit.commit();
  }
  Ran privacy(std::vector<std::string> words) const {
    words.insert(words.begin(), "privacy");
    return run(words, {.environment = environment()});
  }
  std::map<std::string, std::string> environment() const {
    return {{"STELA_DB", db_}, {"STELA_KEYS_STORE", keys_}, {"STELA_KEYS_ERASURES", erasures_}};
  }
  /// Everything that the command has printed must not have.
  static void expect_nobody(const std::string& text) {
    for (const char* const canary : {"Elm St", "Oak St", "Love", "guest-m1"}) {
      EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(canary)));
    }
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
  std::string keys_ = dir_.file("keys/shop.keys.db");
  std::string erasures_ = dir_.file("erasures");
};

}  // namespace stela::test::privacy
