// Bytes that must stay readable for ever: the files in tests/framework/golden were written once.
// Whoever has to change one of them breaks databases that exist.
#include "framework/codec/payloads.hpp"
#include "support/rich_event.hpp"

#include <stela/framework.hpp>
#include <stela/framework/detail/metadata.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace stela::test::golden_test {
namespace {

/// The content of a file, without the newline at its end.
std::string golden(const std::string& name) {
  std::ifstream file{STELA_GOLDEN_DIR "/" + name};
  if (!file) throw std::runtime_error{"no golden file " + name};
  std::ostringstream text;
  text << file.rdbuf();
  std::string content = text.str();
  if (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) text += i % 32 == 0 ? '\n' : ' ';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::istringstream words{text};
  std::string bytes;
  for (std::string word; words >> word;) {
    bytes += static_cast<char>(std::stoi(word, nullptr, 16));
  }
  return bytes;
}

std::string golden_payload(Codec codec, const std::string& name) {
  return codec == Codec::json ? golden(name + ".json") : from_hex(golden(name + ".hex"));
}

constexpr std::array codecs{Codec::json, Codec::portable_binary};

/// The golden bytes decode to `value`, and `value` is still written as they are.
template <class T>
void expect_golden(const std::string& name, const T& value) {
  EXPECT_EQ(json_of(value), golden(name + ".json"));
  EXPECT_EQ(to_hex(bytes_of(Codec::portable_binary, value)), golden(name + ".hex"));
  for (const Codec codec : codecs) {
    EXPECT_EQ(codec::decode<T>(codec, golden_payload(codec, name)), value) << to_string(codec);
  }
}

TEST(Golden, RichEvent) {
  expect_golden("rich_event", sample_rich_event());
}

// An event that came in three versions and changed its name with the second.

struct AccountOpened1 {
  static constexpr EventType event_type{"account.created", 1, local};
  std::string owner;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(owner));
  }
  friend bool operator==(const AccountOpened1&, const AccountOpened1&) = default;
};

struct AccountOpened2 {
  static constexpr EventType event_type{"account.opened", 2, local};
  static constexpr auto former_names = names("account.created");
  using Supersedes = AccountOpened1;
  std::string first_name;
  std::string last_name;

  static AccountOpened2 upcast(AccountOpened1 old) {
    const auto space = old.owner.find(' ');
    return {old.owner.substr(0, space), old.owner.substr(space + 1)};
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(first_name), CEREAL_NVP(last_name));
  }
  friend bool operator==(const AccountOpened2&, const AccountOpened2&) = default;
};

struct AccountOpened {
  static constexpr EventType event_type{"account.opened", 3, should_publish};
  using Supersedes = AccountOpened2;
  std::string first_name;
  std::string last_name;
  std::int64_t limit_cents = 0;
  std::optional<Timestamp> closes_at;

  static AccountOpened upcast(AccountOpened2 old) {
    return {std::move(old.first_name), std::move(old.last_name), -1, {}};
  }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(first_name), CEREAL_NVP(last_name), CEREAL_NVP(limit_cents),
            CEREAL_NVP(closes_at));
  }
  friend bool operator==(const AccountOpened&, const AccountOpened&) = default;
};

TEST(Golden, EachVersionOfAnEvent) {
  expect_golden("account_opened_v1", AccountOpened1{"Jane Doe"});
  expect_golden("account_opened_v2", AccountOpened2{"Jane", "Doe"});
  expect_golden("account_opened_v3",
                AccountOpened{"Jane", "Doe", 5000, Timestamp{std::chrono::microseconds{1}}});
}

AccountOpened read_as_newest(Codec codec, const EventKind& kind, const std::string& payload) {
  const StreamId stream = StreamId::parse("account-1");
  const StoredEvent event{.sequence = GlobalSequence{1},
                          .stream = stream,
                          .version = StreamVersion{1},
                          .kind = kind,
                          .id = {},
                          .recorded_at = {},
                          .correlation = {},
                          .causation_id = {},
                          .metadata = {},
                          .published_before = {},
                          .payload = payload};
  AccountOpened newest;
  EventDecoder<EventSet<AccountOpened>>{codec}.decode(
      event, [&](AccountOpened decoded) { newest = std::move(decoded); });
  return newest;
}

TEST(Golden, OldVersionsAreReadAsTheNewest) {
  for (const Codec codec : codecs) {
    EXPECT_EQ(read_as_newest(codec, {1, "account.created", 1, false},
                             golden_payload(codec, "account_opened_v1")),
              (AccountOpened{"Jane", "Doe", -1, {}}));
    EXPECT_EQ(read_as_newest(codec, {1, "account.opened", 2, false},
                             golden_payload(codec, "account_opened_v2")),
              (AccountOpened{"Jane", "Doe", -1, {}}));
  }
}

struct BasketState {
  static constexpr int snapshot_version = 1;
  std::map<std::string, std::int32_t> quantities;
  std::optional<std::string> coupon;
  std::int64_t total_cents = 0;
  std::unordered_map<std::string, bool> seen;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(quantities), CEREAL_NVP(coupon), CEREAL_NVP(total_cents), CEREAL_NVP(seen));
  }
  friend bool operator==(const BasketState&, const BasketState&) = default;
};

TEST(Golden, Snapshot) {
  expect_golden(
      "basket_state",
      BasketState{{{"apple", 3}, {"pear", 1}}, "SPRING", 1299, {{"x", true}, {"a", false}}});
}

TEST(Golden, Metadata) {
  const Context context{.actor = "jane@example.org",
                        .traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                        .tracestate = "vendor=1",
                        .headers = {{"tenant", "grün"}, {"X-Note", "a \"quoted\" word"}}};

  EXPECT_EQ(metadata::encode(context), golden("metadata.json"));
  EXPECT_EQ(metadata::decode(golden("metadata.json")), context);
}

}  // namespace
}  // namespace stela::test::golden_test
