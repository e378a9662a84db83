// Forgetting a person: the fence, the keys, and what a crash or a backup makes of them.
#include "support/engine.hpp"
#include "support/key_place.hpp"
#include "support/moved.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/detail/erasures.hpp>
#include <stela/framework.hpp>
#include <stela/privacy.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace stela::test::forget_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Guest {
  static constexpr std::string_view category = "guest";
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

const StreamId margaret = Id<Guest>::from("m1").stream();
const StreamId ann = Id<Guest>::from("a1").stream();
const ForgetOptions asked{.by = "dpo", .reason = "Art. 17"};

template <class E>
AppendResult record(EventLog& log, const StreamId& stream, const E& event) {
  detail::EventEncoder encoder{log.conventions(), stream};
  encoder.add(event);
  const StreamAppend append{stream, ExpectedVersion::any(), encoder.events()};
  return log.append({.streams = {&append, 1}});
}

/// "guest-m1: Elm St 1" for each event that isn't a fence.
std::vector<std::string> read(Store& store) {
  std::vector<std::string> all;
  EventDecoder<EventSet<Moved, InvoiceSent, Forgotten>> decoder{store.conventions().reading()};
  for (const StoredEvent& event : store.read_all()) {
    decoder.decode(event, [&]<class E>(const E& decoded) {
      if constexpr (!std::is_same_v<E, Forgotten>) {
        all.push_back(event.stream.name() + ": " + decoded.address.value_or("?"));
      }
    });
  }
  return all;
}

class Forget : public ::testing::Test {
 protected:
  Keys open() { return place.open({.erasures = dir.file("erasures")}); }
  Store open(Keys& with) { return open_at(dir.file("shop.db"), {.keys = &with}); }
  /// The key store as it is now, to be put back later.
  void back_up() { place.back_up(); }
  void restore() { place.restore(); }
  /// As if that had happened after the fence: the keys live, and no file says otherwise. `keys`
  /// is left with other ones.
  void forget_and_be_killed(Keys& keys) {
    back_up();
    {
      Store store = open(keys);
      forget(store, margaret, asked);
    }
    keys = KeyPlace{dir.file("other.keys.db")}.open();
    restore();
    std::filesystem::remove(dir.file("erasures"));
  }
  /// The same of the events.
  void back_up_events() {
    if (!is_on_postgres()) return copy_events("shop.db", "night.db");
    const auto where = location_of(dir.file("shop.db"));
    copy_tables(where.at(0), where.at(1), "night");
  }
  void restore_events() {
    if (!is_on_postgres()) return copy_events("night.db", "shop.db");
    const auto where = location_of(dir.file("shop.db"));
    put_tables_back(where.at(0), "night", where.at(1));
  }
  void copy_events(const std::string& from, const std::string& to) {
    for (const char* const end : {"", "-wal", "-shm"}) std::filesystem::remove(dir.file(to) + end);
    std::filesystem::copy_file(dir.file(from), dir.file(to));
  }

  TempDir dir;
  const KeyPlace place{dir.file("shop.keys.db")};
};

TEST_F(Forget, LeavesOthersAndFencesTheStream) {
  Keys keys = open();
  Store store = open(keys);
  record(store, margaret, Moved{"Elm St 1"});
  record(store, ann, Moved{"Oak St 2"});

  const ForgetReport report = forget(store, margaret, asked);
  EXPECT_EQ(report.fence, GlobalSequence{3});
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?", "guest-a1: Oak St 2"));
  EXPECT_THROW(record(store, margaret, Moved{"Elm St 3"}), SubjectForgotten);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{3});

  std::vector<std::string> fences;
  EventDecoder<EventSet<Forgotten>> decoder{store.conventions().reading()};
  for (const StoredEvent& event : store.read_stream(StreamId::parse("forgotten-guest-m1"))) {
    EXPECT_EQ(forgotten_subject(event.stream), margaret);
    EXPECT_EQ(event.payload.find("m1"), std::string_view::npos) << "it names keys alone";
    decoder.decode(event, [&](const Forgotten& fence) {
      fences.push_back(fence.by + " " + fence.reason + " " + fence.keys.at(0));
    });
  }
  EXPECT_THAT(fences, ElementsAre("dpo Art. 17 " + report.keys.at(0).id.to_string()));
  EXPECT_EQ(forget(store, margaret, asked).fence, GlobalSequence{0}) << "there is nothing left";
}

TEST_F(Forget, KeepsWhatIsForAnotherPurpose) {
  Keys keys = open();
  Store store = open(keys);
  record(store, margaret, Moved{"Elm St 1"});
  record(store, margaret, InvoiceSent{"Elm St 1"});

  forget(store, margaret, {.by = "dpo", .reason = "", .purposes = {""}});
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?", "guest-m1: Elm St 1"));
  record(store, margaret, InvoiceSent{"Elm St 2"});
  forget(store, margaret, asked);
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?", "guest-m1: ?", "guest-m1: ?"));
}

TEST_F(Forget, LeavesWhatIsHeldUntilItIsReleased) {
  Keys keys = open();
  Store store = open(keys);
  record(store, margaret, Moved{"Elm St 1"});
  record(store, margaret, InvoiceSent{"Elm St 1"});
  keys.hold({"guest-m1", "invoices"}, std::nullopt, "tax law");

  const ForgetReport report = forget(store, margaret, asked);
  ASSERT_EQ(report.kept.size(), 1U);
  EXPECT_EQ(report.kept[0].subject.purpose, "invoices");
  EXPECT_EQ(report.kept[0].hold->reason, "tax law");
  ASSERT_EQ(report.keys.size(), 1U);
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?", "guest-m1: Elm St 1"));
  record(store, margaret, InvoiceSent{"Elm St 2"});

  const ForgetReport again = forget(store, margaret, asked);
  EXPECT_EQ(again.fence, GlobalSequence{0});
  EXPECT_EQ(again.kept.size(), 1U);
  keys.release({"guest-m1", "invoices"});
  EXPECT_THAT(forget(store, margaret, asked).kept, ::testing::IsEmpty());
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?", "guest-m1: ?", "guest-m1: ?"));
}

TEST_F(Forget, TakesWhatWasHeldUntilThen) {
  ::stela::testing::ManualClock clock;
  Keys keys = place.open({.erasures = dir.file("erasures"), .clock = &clock});
  Store store = open(keys);
  record(store, margaret, InvoiceSent{"Elm St 1"});
  keys.hold({"guest-m1", "invoices"}, clock.now() + std::chrono::hours{1}, "tax law");
  EXPECT_EQ(forget(store, margaret, asked).kept.at(0).hold->until,
            clock.now() + std::chrono::hours{1});
  EXPECT_THAT(read(store), ElementsAre("guest-m1: Elm St 1"));
  clock.advance(std::chrono::hours{1});
  forget(store, margaret, asked);
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?"));
}

TEST_F(Forget, LetsAPersonWhoReturnsIn) {
  Keys keys = open();
  Store store = open(keys);
  record(store, margaret, Moved{"Elm St 1"});
  forget(store, margaret, asked);
  allow_again(store, margaret);
  record(store, margaret, Moved{"Elm St 2"});
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?", "guest-m1: Elm St 2"));
}

TEST_F(Forget, NeedsKeys) {
  Store store = open_at(dir.file("shop.db"));
  EXPECT_THROW(forget(store, margaret, asked), UsageError);
  EXPECT_THROW(record(store, margaret, Moved{"Elm St 1"}), UsageError);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
}

void append_untyped(EventLog& log, std::string_view type) {
  const NewEvent event{.type = type, .payload = R"({"address":"Elm St 1"})"};
  const StreamAppend append{margaret, ExpectedVersion::any(), {&event, 1}};
  log.append({.streams = {&append, 1}});
}

TEST_F(Forget, IsNotOutrunByTextThatNobodySealed) {
  Keys keys = open();
  Store store = open(keys);
  Store other = open(keys);
  try {
    store.transact([](Transaction& transaction) {
      record(transaction, margaret, Moved{"Elm St 1"});
      throw std::runtime_error{"not this time"};
    });
  } catch (const std::runtime_error&) {
  }
  append_untyped(store, "guest.moved");  // nobody knows of the field yet
  append_untyped(other, "guest.moved");

  record(store, margaret, Moved{"Elm St 1"});
  EXPECT_THROW(append_untyped(store, "guest.moved"), UsageError);
  EXPECT_THROW(append_untyped(other, "guest.moved"), UsageError);
  EXPECT_THROW(other.transact([](Transaction& transaction) {
    append_untyped(transaction, "guest.invoice_sent");
    record(transaction, margaret, InvoiceSent{"Elm St 1"});
    append_untyped(transaction, "guest.invoice_sent");
  }),
               UsageError);
  append_untyped(store, "guest.invoice_sent");
  EXPECT_THROW(append_untyped(store, "stela.forgotten"), UsageError);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{4});
}

TEST_F(Forget, IsAppliedAgainByAnOperator) {
  Keys keys = open();
  Store store = open(keys);
  record(store, margaret, Moved{"Elm St 1"});
  record(store, ann, Moved{"Oak St 2"});
  const KeyId lost = keys.keys_of("guest-m1").at(0).id;
  forget(store, margaret, asked);
  EXPECT_EQ(reapply_erasures(store, keys, true).to_destroy, 0);

  keys.destroy(std::vector<KeyId>{keys.keys_of("guest-a1").at(0).id});
  const auto planned = reapply_erasures(store, keys, true);
  EXPECT_EQ(planned.to_destroy, 0);
  EXPECT_EQ(planned.to_fence, 1);
  EXPECT_EQ(reapply_erasures(store, keys, false).to_fence, 1);
  EXPECT_EQ(reapply_erasures(store, keys, true).to_fence, 0);
  EXPECT_EQ(keys.find(lost), nullptr);
}

TEST_F(Forget, RefusesWhatWasSealedBefore) {
  Keys keys = open();
  Store store = open(keys);
  record(store, margaret, Moved{"Elm St 1"});
  // Sealed before the fence, and appended after it: as a slow thread or process does.
  detail::EventEncoder encoder{store.conventions(), margaret};
  encoder.add(Moved{"Elm St 2"});
  const StreamAppend late{margaret, ExpectedVersion::any(), encoder.events()};
  forget(store, margaret, asked);

  EXPECT_THROW(store.append({.streams = {&late, 1}}), SubjectForgotten);
  EXPECT_THROW(store.transact([&](Transaction& transaction) {
    transaction.append({.streams = {&late, 1}});
  }),
               SubjectForgotten);
  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
}

TEST_F(Forget, LetsNothingThroughBesideThreadsThatAppend) {
  Keys keys = open();
  Store store = open(keys);
  record(store, margaret, Moved{"first"});
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        record(store, ann, Moved{std::to_string(i)});
        try {
          record(store, margaret, Moved{std::to_string(n)});
        } catch (const SubjectForgotten&) {
          ++refused;
        }
      }
    });
  }
  while (store.last_sequence() < GlobalSequence{20}) std::this_thread::yield();
  const GlobalSequence fence = forget(store, margaret, asked).fence;
  for (std::thread& thread : threads) thread.join();

  EXPECT_GT(refused, 0);
  int of_margaret = 0;
  for (const StoredEvent& event : store.read_stream(margaret)) {
    EXPECT_LT(event.sequence, fence);
    ++of_margaret;
  }
  EXPECT_EQ(of_margaret + refused, 201);
}

TEST_F(Forget, IsCompletedByWhoeverOpensTheStoreNext) {
  Keys keys = open();
  {
    Store store = open(keys);
    record(store, margaret, Moved{"Elm St 1"});
  }
  forget_and_be_killed(keys);

  keys = open();
  Store store = open(keys);
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?"));
  EXPECT_TRUE(keys.keys_of("guest-m1").empty());
}

TEST_F(Forget, IsCompletedAsItWasBegunWhateverIsHeldSince) {
  Keys keys = open();
  {
    Store store = open(keys);
    record(store, margaret, Moved{"Elm St 1"});
    record(store, margaret, InvoiceSent{"Elm St 1"});
    keys.hold({"guest-m1", "invoices"}, std::nullopt, "tax law");
  }
  forget_and_be_killed(keys);

  keys = open();
  // What it left stays, and what is behind the fence isn't held any more.
  keys.release({"guest-m1", "invoices"});
  keys.hold({"guest-m1", ""}, std::nullopt, "too late");
  Store store = open(keys);
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?", "guest-m1: Elm St 1"));
}

TEST_F(Forget, IsFoundInTheKeyStoreByAStoreThatWasRestored) {
  Keys keys = open();
  {
    Store store = open(keys);
    record(store, margaret, Moved{"Elm St 1"});
  }
  back_up_events();
  {
    Store store = open(keys);
    forget(store, margaret, asked);
  }
  restore_events();

  Store store = open(keys);
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?"));
  store.transact([](Transaction& transaction) {
    const auto count = Sql{transaction}.value<int>("SELECT count(*) FROM stela_forgotten_keys");
    EXPECT_EQ(count, 1);
  });
}

TEST_F(Forget, IsFoundInTheFileOfErasuresWhenBothWereRestored) {
  {
    Keys keys = open();
    Store store = open(keys);
    record(store, margaret, Moved{"Elm St 1"});
  }
  back_up();
  back_up_events();
  {
    Keys keys = open();
    Store store = open(keys);
    forget(store, margaret, asked);
  }
  restore();
  restore_events();

  Keys keys = open();
  EXPECT_EQ(keys.destroyed_again(), 1U);
  Store store = open(keys);
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?"));
  EXPECT_THROW(record(store, margaret, Moved{"Elm St 3"}), SubjectForgotten);
}

TEST_F(Forget, RefusesAKeyStoreThatIsTooOld) {
  Keys keys = open();
  {
    Store store = open(keys);
    record(store, ann, Moved{"Oak St 2"});
    back_up();
    record(store, margaret, Moved{"Elm St 1"});
  }
  keys = KeyPlace{dir.file("other.keys.db")}.open();
  EXPECT_THROW(open(keys), KeysBehind) << "it is another one";
  restore();
  keys = open();
  EXPECT_THROW(open(keys), KeysBehind);
}

TEST_F(Forget, RefusesOtherKeysAlsoAfterAnImport) {
  std::stringstream exported;
  {
    Keys keys = open();
    Store store = open(keys);
    record(store, margaret, Moved{"Elm St 1"});
    back_up();
    record(store, ann, Moved{"Oak St 2"});
    export_store(store, exported);
  }
  Store imported = open_at(dir.file("second.db"));
  import_store(imported, exported);
  EXPECT_THROW(append_untyped(imported, "guest.moved"), UsageError);
  const auto with = [&](Keys& keys) { open_at(dir.file("second.db"), {.keys = &keys}); };
  Keys others = KeyPlace{dir.file("other.keys.db")}.open();
  EXPECT_THROW(with(others), KeysBehind);
  {
    Keys keys = open();
    with(keys);
    std::stringstream again{exported.str()};
    EXPECT_EQ(import_store(imported, again).imported, 0);
  }
  restore();
  Keys early = open();
  EXPECT_THROW(with(early), KeysBehind);
}

TEST_F(Forget, ReadsWithoutKeysWhatIsNotPersonal) {
  {
    Keys keys = open();
    Store store = open(keys);
    record(store, margaret, Moved{"Elm St 1"});
  }
  Store store = open_at(dir.file("shop.db"));
  EXPECT_THAT(read(store), ElementsAre("guest-m1: ?"));
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST_F(Forget, LeavesTheValueInNoFile) {
  Keys keys = open();
  {
    Store store = open(keys);
    record(store, margaret, Moved{"Kanarienvogel"});
    forget(store, margaret, asked);
    keys.rotate();
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator{dir.file("")}) {
    if (!file.is_regular_file()) continue;
    EXPECT_EQ(bytes_of(file.path()).find("Kanarienvogel"), std::string::npos) << file.path();
  }
}

}  // namespace
}  // namespace stela::test::forget_test
