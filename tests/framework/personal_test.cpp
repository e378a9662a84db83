// Personal fields: what is stored of them, who opens them, and what is refused.
#include "support/moved.hpp"
#include "support/vector_keys.hpp"

#include <stela/framework.hpp>
#include <stela/framework/personal.hpp>
#include <stela/testing/memory_keys.hpp>
#include <stela/testing/memory_store.hpp>
#include <stela/testing/scenario.hpp>

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace stela {
namespace {

using test::Moved;

struct Guest {
  static constexpr std::string_view category = "guest";
};

struct Registered {
  static constexpr EventType event_type{"guest.registered", 1, local};
  Id<Guest> guest;
  Personal<std::string> name;
  Personal<int> birth_year;
  std::string room;
  static constexpr auto subject = &Registered::guest;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(guest), CEREAL_NVP(name), CEREAL_NVP(birth_year), CEREAL_NVP(room));
  }
};

struct Parcel {
  Personal<std::string> label;
  int grams = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(label), CEREAL_NVP(grams));
  }
};

struct GiftSent {
  static constexpr EventType event_type{"gift.sent", 1, local};
  Id<Guest> from;
  Id<Guest> to;
  Personal<std::string, &GiftSent::to> address;
  std::optional<Personal<std::string, &GiftSent::from>> greeting;
  std::vector<Parcel> parcels;
  std::map<std::string, Personal<std::string>> notes;
  static constexpr auto subject = &GiftSent::to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(from), CEREAL_NVP(to), CEREAL_NVP(address), CEREAL_NVP(greeting),
            CEREAL_NVP(parcels), CEREAL_NVP(notes));
  }
};

struct InvoiceSent {
  static constexpr EventType event_type{"invoice.sent", 1, local};
  Id<Guest> guest;
  Personal<std::string> address;
  static constexpr auto subject = personal(&InvoiceSent::guest, "invoices");
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(guest), CEREAL_NVP(address));
  }
};

const Id<Guest> margaret = Id<Guest>::from("m1");
const Id<Guest> ann = Id<Guest>::from("a1");

class PersonalIn : public ::testing::TestWithParam<Codec> {
 protected:
  template <class E>
  std::string seal(const E& event, EventId at = EventId{{1}}, Keyring* keys = nullptr) {
    codec::Sealing sealing{.show = codec::Sealing::Show::sealed,
                           .keys = keys == nullptr ? &keys_ : keys,
                           .place = codec::Place::of_event(at),
                           .stream = &stream_};
    std::string bytes;
    codec::encode(GetParam(), event, bytes, &sealing);
    used_ = sealing.used;
    return bytes;
  }
  template <class E>
  E open(const std::string& bytes, EventId at = EventId{{1}}) {
    const codec::Opening opening{&keys_, codec::Place::of_event(at)};
    return codec::decode<E>(GetParam(), bytes, &opening);
  }
  /// The problem that encoding it has.
  template <class E>
  std::string refusal(const E& event) {
    try {
      seal(event);
    } catch (const codec::EncodeError& e) {
      return e.what();
    }
    return "";
  }

  void forget(std::string_view subject) {
    std::vector<KeyId> ids;
    for (const KeyInfo& key : keys_.keys_of(subject)) ids.push_back(key.id);
    keys_.destroy(ids);
  }

  ::stela::testing::MemoryKeys keys_;
  StreamId stream_ = margaret.stream();
  std::vector<KeyId> used_;
};
INSTANTIATE_TEST_SUITE_P(Codecs, PersonalIn, ::testing::Values(Codec::json, Codec::portable_binary),
                         [](const auto& codec) { return std::string{to_string(codec.param)}; });

TEST_P(PersonalIn, IsStoredSealedAndReadAsItWas) {
  const std::string bytes = seal(Registered{margaret, "Margaret", 1970, "12"});
  EXPECT_EQ(bytes.find("Margaret"), std::string::npos) << bytes;
  EXPECT_NE(bytes.find("12"), std::string::npos) << "what isn't personal stays readable";
  EXPECT_EQ(used_.size(), 1U);

  const auto read = open<Registered>(bytes);
  EXPECT_EQ(read.name.value_or("(forgotten)"), "Margaret");
  EXPECT_EQ(read.birth_year.value_or(0), 1970);
  EXPECT_FALSE(read.name.is_forgotten());
  EXPECT_FALSE(read.name.is_sealed());
}

TEST_P(PersonalIn, IsForgottenWithItsSubjectAlone) {
  const auto greeting = Personal<std::string, &GiftSent::from>{"love"};
  const std::string bytes = seal(GiftSent{
      ann, margaret, "Elm St 1", greeting, {{"for Margaret", 10}}, {{"a.\"b\"", "door code"}}});
  EXPECT_EQ(used_.size(), 2U);
  EXPECT_EQ(open<GiftSent>(bytes).notes.at("a.\"b\"").value_or(""), "door code");
  forget("guest-m1");

  const auto read = open<GiftSent>(bytes);
  EXPECT_EQ(read.address.value_or("(forgotten)"), "(forgotten)");
  EXPECT_TRUE(read.parcels[0].label.is_forgotten());
  EXPECT_EQ(read.parcels[0].grams, 10);
  EXPECT_TRUE(read.notes.at("a.\"b\"").is_forgotten());
  EXPECT_EQ(read.greeting->value_or("(forgotten)"), "love");
}

TEST_P(PersonalIn, StaysSealedWithoutKeys) {
  const std::string bytes = seal(Registered{margaret, "Margaret", 1970, "12"});
  const auto read = codec::decode<Registered>(GetParam(), bytes);
  EXPECT_TRUE(read.name.is_sealed());
  EXPECT_EQ(read.name.value_or("(sealed)"), "(sealed)");
  EXPECT_EQ(read.room, "12");
  EXPECT_NE(refusal(read).find("there are no keys"), std::string::npos) << refusal(read);
}

TEST_P(PersonalIn, OpensInNoOtherEvent) {
  const std::string bytes = seal(Registered{margaret, "Margaret", 1970, "12"});
  const auto elsewhere = open<Registered>(bytes, EventId{{2}});
  EXPECT_THROW(elsewhere.name.value_or(""), CorruptEvent);
}

TEST_P(PersonalIn, OpensInNoOtherField) {
  // Both are texts of one length, so that one can take the other's place.
  GiftSent gift{ann, margaret, "Elm St 1", {}, {{"to Leeds", 1}}, {}};
  std::string bytes = seal(gift);
  const auto read = open<GiftSent>(bytes);
  const auto form_of = [&](std::string_view clear) {
    for (const char* const mark : {"~s1.", "\x01"}) {
      std::size_t at = bytes.find(GetParam() == Codec::json ? "~s1." : mark);
      (void)clear;
      if (at != std::string::npos) return at;
    }
    return std::string::npos;
  };
  ASSERT_NE(form_of("Elm St 1"), std::string::npos);
  const codec::SealedValue& address = **detail::PersonalAccess::sealed(read.address);
  const codec::SealedValue& label = **detail::PersonalAccess::sealed(read.parcels[0].label);
  ASSERT_EQ(address.box.size(), label.box.size());
  bytes.replace(bytes.find(address.box), address.box.size(), label.box);
  EXPECT_THROW(open<GiftSent>(bytes).address.value_or(""), CorruptEvent);
  EXPECT_EQ(open<GiftSent>(bytes).parcels[0].label.value_or(""), "to Leeds");
}

TEST_P(PersonalIn, IsRefusedIfItIsNotSealed) {
  std::string bytes;
  codec::Sealing clear{.show = codec::Sealing::Show::clear};
  codec::encode(GetParam(), Moved{"Elm St 1"}, bytes, &clear);
  try {
    open<Moved>(bytes);
    FAIL() << "it was read";
  } catch (const codec::DecodeError& e) {
    EXPECT_NE(std::string{e.what()}.find("isn't sealed"), std::string::npos) << e.what();
  }
}

TEST_P(PersonalIn, IsSealedAgainForTheSamePersonAlone) {
  const auto read = open<Registered>(seal(Registered{margaret, "Margaret", 1970, "12"}));
  const auto copied = open<Moved>(seal(Moved{read.name}));
  EXPECT_EQ(copied.address.value_or(""), "Margaret");

  const std::string other = refusal(Registered{ann, read.name, 1, ""});
  EXPECT_NE(other.find("guest-m1"), std::string::npos) << other;
  EXPECT_NE(other.find("given_to()"), std::string::npos) << other;
  const auto given = open<Registered>(seal(Registered{ann, read.name.given_to(), 1, ""}));
  forget("guest-m1");
  EXPECT_EQ(given.name.value_or(""), "Margaret");
}

TEST_P(PersonalIn, IsRecordedAsForgottenOnceItIs) {
  const auto read = open<Moved>(seal(Moved{"Elm St 1"}));
  forget("guest-m1");
  // It was open in memory when the person was forgotten.
  EXPECT_TRUE(open<Moved>(seal(read)).address.is_forgotten());
  EXPECT_TRUE(open<Moved>(seal(open<Moved>(seal(read)))).address.is_forgotten());
}

TEST_P(PersonalIn, IsNotSealedForWhoWasForgotten) {
  seal(Moved{"Elm St 1"});
  forget("guest-m1");
  EXPECT_THROW(seal(Moved{"Elm St 2"}), SubjectForgotten);
  keys_.allow_again("guest-m1");
  EXPECT_EQ(open<Moved>(seal(Moved{"Elm St 2"})).address.value_or(""), "Elm St 2");
}

TEST_P(PersonalIn, HasAKeyForEachPurpose) {
  seal(InvoiceSent{margaret, "Elm St 1"});
  const std::vector<KeyId> invoices = used_;
  seal(Registered{margaret, "Margaret", 1970, "12"});
  EXPECT_NE(invoices, used_);
}

TEST_P(PersonalIn, IsMaskedWhereItIsNotStored) {
  std::string bytes;
  codec::encode(GetParam(), Registered{margaret, "Margaret", 1970, "12"}, bytes);
  EXPECT_EQ(bytes.find("Margaret"), std::string::npos);
  EXPECT_NE(bytes.find("(personal)"), std::string::npos);
}

TEST_P(PersonalIn, NamesAKeyThatIsMissing) {
  const std::string bytes = seal(Moved{"Elm St 1"});
  ::stela::testing::MemoryKeys others;
  const codec::Opening opening{&others, codec::Place::of_event(EventId{{1}})};
  EXPECT_THROW(codec::decode<Moved>(GetParam(), bytes, &opening), KeyMissing);
}

TEST_P(PersonalIn, HidesTheLengthOfShortValues) {
  EXPECT_EQ(seal(Moved{"Li"}).size(), seal(Moved{"Wolfeschlegel"}).size());
}

TEST_P(PersonalIn, HasATextThatOpensElsewhere) {
  const auto read = open<Moved>(seal(Moved{"Elm St 1"}));
  const std::string text = sealed_text(read.address);
  EXPECT_EQ(text.find("Elm"), std::string::npos);
  EXPECT_EQ(read_sealed_text<std::string>(text, &keys_).value_or(""), "Elm St 1");
  EXPECT_TRUE(read_sealed_text<std::string>(text, nullptr).is_sealed());
  EXPECT_THROW(read_sealed_text<std::string>("Elm St 1", &keys_), UsageError);
  EXPECT_THROW(sealed_text(Personal<std::string>{"Elm St 1"}), UsageError);
  forget("guest-m1");
  const auto gone = read_sealed_text<std::string>(text, &keys_);
  EXPECT_TRUE(gone.is_forgotten());
  EXPECT_EQ(sealed_text(gone).substr(0, 4), "~f1.");
}

/// Between the look at the value's key and that for a new one, its subject is forgotten and
/// returns.
class ForgetsMeanwhile final : public Keyring {
 public:
  explicit ForgetsMeanwhile(Keyring& keys) : keys_{keys} {}
  std::shared_ptr<const SubjectKey> key_of(const Subject& subject) override {
    std::vector<KeyId> ids;
    for (const KeyInfo& key : keys_.keys_of(subject.name)) ids.push_back(key.id);
    keys_.destroy(ids);
    keys_.allow_again(subject.name);
    return keys_.key_of(subject);
  }
  std::shared_ptr<const SubjectKey> find(const KeyId& id) override { return keys_.find(id); }
  std::vector<KeyInfo> keys_of(std::string_view subject) override { return keys_.keys_of(subject); }
  std::size_t destroy(std::span<const KeyId> ids) override { return keys_.destroy(ids); }
  void allow_again(std::string_view subject) override { keys_.allow_again(subject); }

 private:
  Keyring& keys_;
};

TEST_P(PersonalIn, ComesBackUnderNoNewKey) {
  const auto read = open<Moved>(seal(Moved{"Elm St 1"}));
  ForgetsMeanwhile keys{keys_};
  EXPECT_TRUE(open<Moved>(seal(read, EventId{{1}}, &keys)).address.is_forgotten());
}

struct Picky {
  std::string text;
  template <class Archive>
  std::string save_minimal(const Archive&) const {
    return text;
  }
  template <class Archive>
  void load_minimal(const Archive&, const std::string& value) {
    throw std::runtime_error{"no good address: " + value};
  }
};
struct Listed {
  static constexpr EventType event_type{"guest.listed", 1, local};
  Personal<Picky> address;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(address));
  }
};

TEST_P(PersonalIn, IsQuotedInNoError) {
  const auto read = open<Listed>(seal(Listed{Picky{"Elm St 1"}}));
  try {
    read.address.value_or({});
    FAIL() << "it was read";
  } catch (const CorruptEvent& e) {
    EXPECT_EQ(std::string{e.what()}.find("Elm"), std::string::npos) << e.what();
  }
}

// --- a stored form that doesn't change

/// Those of the page.
constexpr std::string_view in_event =
    "~s1.8PHy8_T19vf4-fr7_P3-_w.OoMBJ0D5A6lkYd1_pV9XS3Ke-GwJdTAKi"
    "OK3MJ2bA6sLcGsWAvML6AkxcQBPVlw-ngDvIpnyF5joIBIltXZQUo8JCIKU1QqF";
constexpr std::string_view in_snapshot =
    "~s1.8PHy8_T19vf4-fr7_P3-_w.N2JBJgNzqLFUYpyWLQHDhb_gmbDqxcPf9"
    "STJ9MX75mFtHJdeu4Hu_d_VY4MLBRrmUkTQErp0RrJCWtp2ofqpHyp5_AST8F8i";
constexpr std::string_view in_timer =
    "~s1.8PHy8_T19vf4-fr7_P3-_w.udarBiWxG8shJRM7p1IG8rsigL-MiqvpE"
    "cHprM6bRwqhkOVAxNOp4jcVPdV69P_4wVPn_xTiacz8vCfwndxYma5xVXlu5-zw";
constexpr std::string_view in_binary =
    "01f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff1b33d7838e5475d2d63402b56d5937fd7e03f1346bd4f4"
    "00720bb079006534baf8b2c813d6b291d1e13c044e4d00d96e97cdf542bd92502f68dcaa28203b44d52f76a9c650bb"
    "f912";

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string{digits.substr(i, 2)}, nullptr, 16));
  }
  return bytes;
}

TEST(SealedField, OpensAsTheVectorsSay) {
  test::VectorKeys keys;
  const Uuid id = test::VectorKeys::event();
  const auto opened = [&](const codec::Place& place, std::string_view stored, bool is_text) {
    const codec::Opening opening{&keys, place};
    return codec::read_sealed(&opening, is_text ? "address" : "0", stored, is_text)->open();
  };

  EXPECT_EQ(opened(codec::Place::of_event(id), in_event, true), "\"Elm Street 1\"");
  EXPECT_EQ(opened(codec::Place::of_snapshot(margaret.stream(), 3), in_snapshot, true),
            "\"Elm Street 1\"");
  EXPECT_EQ(opened(codec::Place::of_timer("reminders", "guest-m1", "not_paid", 1), in_timer, true),
            "\"Elm Street 1\"");
  const std::string plain = opened(codec::Place::of_event(id), from_hex(in_binary), false);
  EXPECT_EQ(codec::decode<std::string>(Codec::portable_binary, plain), "Elm Street 1");
}

TEST(SealedField, OfEveryChangedByteIsRefused) {
  test::VectorKeys keys;
  const Uuid id = test::VectorKeys::event();
  const codec::Opening opening{&keys, codec::Place::of_event(id)};
  const std::string stored = from_hex(in_binary);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    std::string changed = stored;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    const auto open = [&] { codec::read_sealed(&opening, "0", changed, false)->open(); };
    if (i == 0) {
      EXPECT_THROW(open(), codec::DecodeError);
    } else {
      EXPECT_THROW(open(), CorruptEvent) << "byte " << i;
    }
    EXPECT_ANY_THROW(
        codec::read_sealed(&opening, "0", std::string_view{stored}.substr(0, i), false)->open());
  }
}

// --- in a store

TEST(PersonalEvent, IsSealedToItsOwnId) {
  ::stela::testing::MemoryKeys keys;
  ::stela::testing::MemoryStore store{{.keys = &keys}};
  const std::vector<Moved> events{{"Elm St 1"}, {"Elm St 2"}};
  const StreamId stream = margaret.stream();
  detail::EventEncoder encoder{store.conventions(), stream};
  for (const Moved& event : events) encoder.add(event);
  const StreamAppend append{stream, ExpectedVersion::any(), encoder.events()};
  store.append({.streams = {&append, 1}});

  EventDecoder<EventSet<Moved>> decoder{store.conventions().reading()};
  std::vector<std::string> read;
  for (const StoredEvent& event : store.read_all()) {
    EXPECT_EQ(event.payload.find("Elm"), std::string_view::npos);
    decoder.decode(event, [&](const Moved& moved) { read.push_back(moved.address.value_or("?")); });
  }
  EXPECT_EQ(read, (std::vector<std::string>{"Elm St 1", "Elm St 2"}));
}

}  // namespace
}  // namespace stela
