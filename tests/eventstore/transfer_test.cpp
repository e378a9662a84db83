#include "eventstore/transfer.hpp"
#include "support/fault_vfs.hpp"
#include "support/histories.hpp"
#include "support/peak_memory.hpp"
#include "support/random_history.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"

#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace stela::transfer_test {
namespace {

using test::append;
using test::export_of;
using test::first_lines;
using test::full_lines;
using test::import_text;
using test::message_of;
using test::problems_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Transfer : public test::TransferTest {};

// --- the format

TEST_F(Transfer, WritesALineForEachEvent) {
  auto store = in_memory();
  {
    const Context context{.correlation_id = "request-7",
                          .causation_id = *Uuid::parse("0190b0f3-5d3c-7d9e-8a57-3f6f0e1c2b4a"),
                          .actor = "zoë"};
    const ContextScope scope{context};
    append(store, "order-1", {{"order.placed", 2, true, R"({"total":9007199254740993})"}});
  }
  append(store, "order-1", {{"order.noted", 1, false, std::string_view{"\0\xff", 2}}});

  EXPECT_EQ(export_of(store),
            R"({"format":"stela-events","version":1,"codec":"json"})"
            "\n"
            R"({"sequence":1,"stream":"order-1","version":1,)"
            R"("id":"019b76da-a800-7000-970e-1303597c5ff3","type":"order.placed",)"
            R"("schema_version":2,"publishes":true,"recorded_at":1767225600000000,)"
            R"("correlation":"request-7","causation":"0190b0f3-5d3c-7d9e-8a57-3f6f0e1c2b4a",)"
            R"("metadata":{"actor":"zoë"},"payload":{"total":9007199254740993}})"
            "\n"
            R"({"sequence":2,"stream":"order-1","version":2,)"
            R"("id":"019b76da-a800-7001-a694-70cb9d67a0d0","type":"order.noted",)"
            R"("schema_version":1,"publishes":false,"recorded_at":1767225600000000,)"
            R"("payload_base64":"AP8="})"
            "\n");
}

TEST_F(Transfer, ExportsAnyStore) {
  testing::MemoryStore memory{{.clock = &clock}};
  append(memory, "order-1");
  auto store = in_memory();

  import_text(store, export_of(memory));

  EXPECT_EQ(full_lines(store.read_all()), full_lines(memory.read_all()));
}

TEST_F(Transfer, ExportsASelection) {
  auto store = in_memory();
  append(store, "order-1", 3);
  append(store, "stock-1", 2);

  const std::string stock = export_of(store, {.categories = {"stock"}});

  EXPECT_THAT(stock, AllOf(HasSubstr("\"sequence\":4,"), HasSubstr("\"sequence\":5,")));
  EXPECT_EQ(std::count(stock.begin(), stock.end(), '\n'), 3);
  EXPECT_THROW((void)export_of(store, {.direction = Direction::backward}), UsageError);
}

TEST_F(Transfer, EndsBeforeEventsThatComeDuringIt) {
  auto store = in_memory();
  append(store, "order-1");
  const std::vector<Tag> tags{Tag::parse("customer-1")};
  const auto append_tagged = [&](const Progress&) {
    append(store, "order-1", {{.type = "ordered", .payload = "{}", .tags = tags}});
  };
  std::ostringstream out;

  EXPECT_EQ(export_events(store, out, {}, {.progress = append_tagged}).events, 1);

  EXPECT_EQ(store.last_sequence(), GlobalSequence{2});
  auto copy = in_memory();
  import_text(copy, out.str());
  import_text(copy, export_of(store));
  EXPECT_EQ(export_of(copy), export_of(store));
}

// --- there and back

struct RoundTrip {
  int seed;
  Codec codec;

  friend void PrintTo(const RoundTrip& trip, std::ostream* out) {
    *out << to_string(trip.codec) << '_' << trip.seed;
  }
};

class TransferOfAnyHistory : public Transfer, public ::testing::WithParamInterface<RoundTrip> {};

TEST_P(TransferOfAnyHistory, KeepsEveryByte) {
  auto original = in_memory(GetParam().codec);
  test::RandomHistory{static_cast<std::uint64_t>(GetParam().seed), clock}.append_to(original, 120);
  const std::string text = export_of(original);
  auto copy = in_memory(GetParam().codec);

  const auto result = import_text(copy, text);

  EXPECT_EQ(result.last, original.last_sequence());
  EXPECT_EQ(full_lines(copy.read_all()), full_lines(original.read_all()));
  EXPECT_TRUE(export_of(copy) == text);
  EXPECT_THAT(problems_of(copy), IsEmpty());
}

std::vector<RoundTrip> round_trips() {
  std::vector<RoundTrip> all;
  for (int seed = 1; seed <= 12; ++seed) {
    all.push_back({seed, seed % 3 == 0 ? Codec::portable_binary : Codec::json});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Seeds, TransferOfAnyHistory, ::testing::ValuesIn(round_trips()),
                         ::testing::PrintToStringParamName());

TEST_F(Transfer, KeepsPayloadsThatAreNearlyJson) {
  auto original = in_memory();
  const std::vector<std::string> payloads{"",
                                          " ",
                                          "\n",
                                          "{}",
                                          "{} ",
                                          "\t{}",
                                          "{\n}",
                                          "{\r}",
                                          "nul",
                                          "null",
                                          "truth",
                                          "0",
                                          "00",
                                          "-0",
                                          "1e400",
                                          "\"\\u00\"",
                                          "\"",
                                          "[1,]",
                                          "{\"a\":1,\"a\":2}",
                                          "\xef\xbb\xbf{}",
                                          "\"\xff\"",
                                          "{\"a\":1}{\"b\":2}",
                                          "\"\\ud800\"",
                                          std::string(1023, '[') + std::string(1023, ']'),
                                          std::string(1022, '[') + '1' + std::string(1022, ']'),
                                          std::string(1023, '[') + '1' + std::string(1023, ']'),
                                          std::string(1024, '[') + '1' + std::string(1024, ']'),
                                          std::string(5000, '['),
                                          std::string(1100, '[') + std::string(1100, ']'),
                                          std::string("{\"a\":\"\0\"}", 9)};
  for (const std::string& payload : payloads) {
    append(original, "order-1", {{"noted", 1, false, payload}});
  }
  auto copy = in_memory();

  import_text(copy, export_of(original));

  EXPECT_EQ(full_lines(copy.read_all()), full_lines(original.read_all()));
}

TEST_F(Transfer, KeepsWholeNumbersOfEverySize) {
  const std::string header = first_lines(
      [&] {
        auto store = in_memory();
        return export_of(store);
      }(),
      1);
  for (const std::string time : {"-9223372036854775808", "9223372036854775807", "-1", "0"}) {
    const std::string text = header +
                             R"({"sequence":1,"stream":"o-1","version":1,)"
                             R"("id":"0190b0f3-5d3c-7d9e-8a57-3f6f0e1c2b4a","type":"a",)"
                             R"("schema_version":2147483647,"publishes":false,"recorded_at":)" +
                             time + R"(,"payload":9223372036854775807})" + "\n";
    auto store = in_memory();
    import_text(store, text);
    EXPECT_EQ(export_of(store), text);
  }
}

TEST_F(Transfer, AllowsLaterAppendsToTheCopy) {
  auto original = in_memory();
  append(original, "order-1", {{"a", 1, true, "{}"}, {"b", 1, false, "{}"}});
  auto copy = in_memory();
  append(copy, "order-1", std::vector<NewEvent>{});
  import_text(copy, export_of(original));

  append(copy, "order-1", {{"b", 1, false, "{}"}});

  EXPECT_EQ(copy.last_sequence(), GlobalSequence{3});
  for (const StoredEvent& event : copy.read_all({.from = GlobalSequence{3}})) {
    EXPECT_EQ(event.version, StreamVersion{3});
    EXPECT_EQ(event.published_before, StreamVersion{1});
  }
}

TEST_F(Transfer, NeedsNoMoreMemoryForALongHistory) {
  if (!test::peaks_are_of_the_work) GTEST_SKIP() << "the sanitizer's own memory would be measured";
  auto original = test::open_store(dir.file("shop.db"), options());
  const std::string payload = '"' + std::string(4000, 'x') + '"';
  const std::vector<NewEvent> events(1000, NewEvent{"noted", 1, true, payload});
  for (int i = 0; i < 20; ++i) append(*original, "order-1", events);
  auto copy = test::open_store(dir.file("copy.db"), options());

  const std::int64_t exporting = test::peak_mib_of([&] {
    std::ofstream out{dir.file("events.jsonl")};
    export_events(*original, out);
  });
  const std::int64_t importing = test::peak_mib_of([&] {
    std::ifstream in{dir.file("events.jsonl")};
    EXPECT_EQ(import_events(*copy, in).imported, 20'000);
  });

  EXPECT_LT(exporting, 32);
  EXPECT_LT(importing, 32);
}

// --- once more

TEST_F(Transfer, SkipsExistingEvents) {
  auto original = in_memory();
  append(original, "order-1", 2500);
  const std::string text = export_of(original);
  auto copy = in_memory();

  EXPECT_EQ(import_text(copy, first_lines(text, 1201)).imported, 1200);
  const auto rest = import_text(copy, text);
  const auto again = import_text(copy, text);

  EXPECT_EQ(rest.skipped, 1200);
  EXPECT_EQ(rest.imported, 1300);
  EXPECT_EQ(again.skipped, 2500);
  EXPECT_EQ(again.imported, 0);
  EXPECT_TRUE(export_of(copy) == text);
}

TEST_F(Transfer, ContinuesAPartialHistory) {
  auto original = in_memory();
  append(original, "order-1", 10);
  auto copy = in_memory();
  import_text(copy, export_of(original, {.to = GlobalSequence{6}}));
  import_text(copy, export_of(original, {.from = GlobalSequence{4}}));
  EXPECT_EQ(full_lines(copy.read_all()), full_lines(original.read_all()));
}

TEST_F(Transfer, StopsOnRequestAndContinuesLater) {
  auto original = in_memory();
  append(original, "order-1", 5000);
  const std::string text = export_of(original);
  auto copy = in_memory();
  std::stop_source stop;
  const TransferOptions soon{.progress = [&](const Progress&) { stop.request_stop(); },
                             .stop = stop.get_token()};

  const auto stopped = import_text(copy, text, soon);
  std::ostringstream out;
  const auto written = export_events(original, out, {}, soon);

  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.imported, 1000);
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{1000});
  EXPECT_FALSE(written.finished);
  EXPECT_TRUE(import_text(copy, text).finished);
  EXPECT_TRUE(export_of(copy) == text);
}

TEST_F(Transfer, ContinuesAfterAnyFault) {
  auto original = in_memory();
  test::RandomHistory{8, clock}.append_to(original, 30);
  const std::string text = export_of(original);
  test::FailNth watcher;
  const test::FaultVfs vfs{watcher};
  bool has_fired = true;
  int failures = 0;
  for (int nth = 1; has_fired; ++nth) {
    const std::string path = dir.file(std::to_string(nth) + ".db");
    {
      auto copy =
          test::open_store(path, {.durability = sqlite::Durability::full, .vfs = vfs.name()});
      watcher.arm(
          {.operations = {test::FileOperation::write, test::FileOperation::sync}, .nth = nth});
      try {
        import_text(*copy, text);
      } catch (const Error&) {
        ++failures;
      }
      watcher.disarm();
      has_fired = watcher.has_fired();
    }
    auto copy = sqlite::open(path);
    import_text(copy, text);
    ASSERT_TRUE(export_of(copy) == text) << watcher.first_failure();
  }
  EXPECT_GT(failures, 3);
}

// --- the streams

/// Takes some bytes and then no more.
class SmallBuffer final : public std::streambuf {
 public:
  explicit SmallBuffer(int capacity) : left_{capacity} {}

 protected:
  int_type overflow(int_type c) override { return left_-- > 0 ? c : traits_type::eof(); }

 private:
  int left_;
};

TEST_F(Transfer, SaysWhenTheExportCannotBeWritten) {
  auto store = in_memory();
  append(store, "order-1", 10);
  SmallBuffer full{100};
  std::ostream out{&full};
  EXPECT_THAT(message_of<StoreFailed>([&] { export_events(store, out); }),
              HasSubstr("writing the export failed"));
}

/// Breaks in the middle.
class BrokenBuffer final : public std::streambuf {
 public:
  explicit BrokenBuffer(std::string text) : text_{std::move(text)} {
    setg(text_.data(), text_.data(), text_.data() + text_.size());
  }

 protected:
  int_type underflow() override { throw std::runtime_error{"the cable is out"}; }

 private:
  std::string text_;
};

TEST_F(Transfer, SaysWhenTheImportCannotBeRead) {
  auto store = in_memory();
  append(store, "order-1", 3);
  BrokenBuffer broken{export_of(store)};
  std::istream in{&broken};
  auto copy = in_memory();
  EXPECT_THAT(message_of<StoreFailed>([&] { import_events(copy, in); }),
              HasSubstr("reading line 5 failed"));
}

TEST_F(Transfer, StopsTheExportAtAnEventThatIsCorrupt) {
  auto store = test::open_store(dir.file("shop.db"), options());
  for (int i = 0; i < 5; ++i) append(*store, "order-1");
  const std::string whole = export_of(*store);
  test::RawSqlite raw{dir.file("shop.db")};
  raw.drop_triggers();
  raw.run("UPDATE events SET payload = x'00' WHERE sequence = 4");
  std::ostringstream out;

  EXPECT_THAT(message_of<CorruptEvent>([&] { export_events(*store, out); }),
              HasSubstr("event 4 is corrupt"));

  EXPECT_EQ(out.str(), first_lines(whole, 4));
}

TEST_F(Transfer, WritesAnEmptyHistory) {
  testing::MemoryStore memory;
  const std::string text = export_of(memory);
  EXPECT_EQ(text, "{\"format\":\"stela-events\",\"version\":1,\"codec\":\"json\"}\n");
  auto store = in_memory();
  EXPECT_EQ(import_text(store, text).last, GlobalSequence{0});
}

}  // namespace
}  // namespace stela::transfer_test
