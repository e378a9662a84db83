#include "support/fault_vfs.hpp"
#include "support/histories.hpp"
#include "support/peak_memory.hpp"
#include "support/random_history.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/testing/memory_store.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace stela {
namespace {

using test::append;
using test::full_lines;
using test::message_of;
using test::problems_of;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string export_of(EventStore& store, const AllQuery& which = {}) {
  std::ostringstream out;
  sqlite::export_events(store, out, which);
  return out.str();
}

sqlite::ImportResult import_text(sqlite::Store& store, const std::string& text,
                                 const sqlite::TransferOptions& options = {}) {
  std::istringstream in{text};
  return sqlite::import_events(store, in, options);
}

/// The text's first lines, line breaks and all.
std::string first_lines(const std::string& text, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count; ++i) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

class Transfer : public ::testing::Test {
 protected:
  sqlite::Options options(Codec codec = Codec::json) {
    return {
        .durability = sqlite::Durability::relaxed, .codec = codec, .clock = &clock, .random = &ids};
  }
  sqlite::Store in_memory(Codec codec = Codec::json) {
    return sqlite::open_in_memory(options(codec));
  }

  test::TempDir dir;
  testing::ManualClock clock;
  test::SeededRandom ids{9};
};

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

TEST_F(Transfer, ExportsWhatAQuerySelects) {
  auto store = in_memory();
  append(store, "order-1", 3);
  append(store, "stock-1", 2);

  const std::string stock = export_of(store, {.categories = {"stock"}});

  EXPECT_THAT(stock, AllOf(HasSubstr("\"sequence\":4,"), HasSubstr("\"sequence\":5,")));
  EXPECT_EQ(std::count(stock.begin(), stock.end(), '\n'), 3);
  EXPECT_THROW((void)export_of(store, {.direction = Direction::backward}), UsageError);
}

// --- there and back

struct RoundTrip {
  int seed;
  Codec codec;
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
                         [](const auto& trip) {
                           return std::string{to_string(trip.param.codec)} + "_" +
                                  std::to_string(trip.param.seed);
                         });

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

TEST_F(Transfer, LetsTheStoreGoOn) {
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
    sqlite::export_events(*original, out);
  });
  const std::int64_t importing = test::peak_mib_of([&] {
    std::ifstream in{dir.file("events.jsonl")};
    EXPECT_EQ(sqlite::import_events(*copy, in).imported, 20'000);
  });

  EXPECT_LT(exporting, 32);
  EXPECT_LT(importing, 32);
}

// --- once more

TEST_F(Transfer, SkipsWhatIsThere) {
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

TEST_F(Transfer, GoesOnWithAPartOfAHistory) {
  auto original = in_memory();
  append(original, "order-1", 10);
  auto copy = in_memory();
  import_text(copy, export_of(original, {.to = GlobalSequence{6}}));
  import_text(copy, export_of(original, {.from = GlobalSequence{4}}));
  EXPECT_EQ(full_lines(copy.read_all()), full_lines(original.read_all()));
}

TEST_F(Transfer, EndsWhenItIsToldToAndGoesOnLater) {
  auto original = in_memory();
  append(original, "order-1", 5000);
  const std::string text = export_of(original);
  auto copy = in_memory();
  std::stop_source stop;
  const sqlite::TransferOptions soon{
      .progress = [&](const sqlite::Progress&) { stop.request_stop(); }, .stop = stop.get_token()};

  const auto stopped = import_text(copy, text, soon);
  std::ostringstream out;
  const auto written = sqlite::export_events(original, out, {}, soon);

  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.imported, 1000);
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{1000});
  EXPECT_FALSE(written.finished);
  EXPECT_TRUE(import_text(copy, text).finished);
  EXPECT_TRUE(export_of(copy) == text);
}

TEST_F(Transfer, GoesOnBehindAnyFault) {
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

// --- what is refused

class BadImport : public Transfer {
 protected:
  BadImport() {
    for (int i = 0; i < 3; ++i) append(original, "order-1");
    text = export_of(original);
  }
  /// What is said of the third line, event 2, with `from` replaced by `to`; what was before it is
  /// imported.
  std::string problem_with(const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t line = first_lines(text, 2).size();
    const std::size_t at = changed.find(from, line);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return problem_of(changed);
  }
  std::string problem_of(const std::string& changed) {
    auto copy = in_memory();
    const std::string problem = message_of<UsageError>([&] { import_text(copy, changed); });
    EXPECT_THAT(problem, AllOf(HasSubstr("line 3: "),
                               EndsWith("the store holds what comes before it, up to event 1; "
                                        "mend the line and import again")));
    EXPECT_EQ(copy.last_sequence(), GlobalSequence{1});
    EXPECT_THAT(problems_of(copy), IsEmpty());
    EXPECT_EQ(import_text(copy, text).last, GlobalSequence{3});
    return problem;
  }

  sqlite::Store original = in_memory();
  std::string text;
};

TEST_F(BadImport, NamesTheLineAndWhatIsWrongWithIt) {
  const std::vector<std::array<std::string, 3>> changes{
      {"{\"seq", "\"seq", "it "},
      {"\"sequence\":2", "\"sequence\":2.5", "sequence isn't a whole number"},
      {"\"sequence\":2", "\"sequence\":\"2\"", "sequence isn't a whole number"},
      {"\"sequence\":2", "\"sequence\":-2", "sequence is less than 1"},
      {"\"sequence\":2", "\"sequence\":99999999999999999999", "sequence isn't a whole number"},
      {"\"sequence\":2,", "", "sequence is missing"},
      {"\"sequence\":2,", "\"sequence\":2,\"sequence\":2,", "sequence stands there twice"},
      {"\"sequence\":2,", "\"sequence\":3,", "event 3 follows event 1"},
      {"\"sequence\":2,", "\"sequence\":1,", "event 1 follows event 1"},
      {"order-1", "or der-1", "can't be a stream name"},
      {"\"version\":2", "\"version\":3", "version 3 of 'order-1' follows version 1"},
      {"\"version\":2", "\"version\":1", "version 1 of 'order-1' follows version 1"},
      {"\"version\":2", "\"version\":9223372036854775807", "follows version 1"},
      {"\"id\":\"0", "\"id\":\"x", "id isn't a UUID"},
      {"\"noted\"", "\"no ted\"", "type isn't the name of an event"},
      {"\"schema_version\":1", "\"schema_version\":0", "schema_version is less than 1"},
      {"\"schema_version\":1", "\"schema_version\":2147483648", "schema_version is too large"},
      {"\"publishes\":false", "\"publishes\":0", "publishes isn't true or false"},
      {"\"recorded_at\":1", "\"recorded_at\":null,\"x\":1", "recorded_at isn't a whole number"},
      {"\"payload\":{}", "\"payload\":{\"a\":nul}", "payload isn't JSON"},
      {"\"payload\":{}", "\"payload\":{\"a\":[1,]}", "payload isn't JSON"},
      {"\"payload\":{}", "\"payload_base64\":\"AA\"", "payload_base64 isn't base64"},
      {"\"payload\":{}", "\"payload_base64\":\"AB==\"", "payload_base64 isn't base64"},
      {"\"payload\":{}", "\"payload\":{},\"payload_base64\":\"\"", "payload must stand there once"},
      {",\"payload\":{}", "", "payload must stand there once"},
      {"\"payload\":{}", "\"payload\":{},\"note\":1", "'note' isn't a field of an event"},
      {"\"payload\":{}", "\"correlation\":\"\",\"payload\":{}", "correlation is empty"},
      {"\"payload\":{}", "\"correlation\":\"\\u0001\",\"payload\":{}", "control character"},
      {"\"payload\":{}", "\"causation\":\"7\",\"payload\":{}", "causation isn't a UUID"},
      {"\"payload\":{}", "\"metadata\":[],\"payload\":{}", "isn't an object"},
      {"\"payload\":{}", "\"metadata\":{\"actor\":7},\"payload\":{}", "actor isn't a text"},
      {"\"payload\":{}}", "\"payload\":{}} x", "it isn't valid JSON: "},
      {"\"payload\":{}}", "\"payload\":{}", "payload "}};
  for (const auto& [from, to, expected] : changes) {
    EXPECT_THAT(problem_with(from, to), HasSubstr(expected)) << to;
  }
}

TEST_F(BadImport, NamesALineThatIsNone) {
  const std::string before = first_lines(text, 2);
  EXPECT_THAT(problem_of(before + "\n"), HasSubstr("line 3: it's empty"));
  EXPECT_THAT(problem_of(before + "[]\n"), HasSubstr("line 3: it isn't an object"));
  EXPECT_THAT(problem_of(before + std::string(97 * 1024 * 1024, 'x')),
              HasSubstr("the line is longer than any event can be"));
  EXPECT_THAT(problem_of(before + text.substr(before.size(), 40)), HasSubstr("line 3: "));
}

TEST_F(BadImport, NamesAHeaderThatIsNone) {
  auto copy = in_memory();
  const auto problem = [&](const std::string& bad) {
    return message_of<UsageError>([&] { import_text(copy, bad); });
  };
  EXPECT_THAT(problem(""), HasSubstr("line 1: there is nothing to import"));
  EXPECT_THAT(problem("{}\n"), HasSubstr("line 1: this isn't an export of Stela"));
  EXPECT_THAT(problem("hello\n"), HasSubstr("line 1: it "));
  EXPECT_THAT(problem(R"({"format":"stela-events","version":2,"codec":"json"})"),
              HasSubstr("of another version of Stela"));
  EXPECT_THAT(problem(R"({"format":"stela-events","version":1,"codec":"xml"})"),
              AllOf(HasSubstr("the codec isn't one"), HasSubstr("nothing is imported")));
  EXPECT_THAT(problem(text.substr(first_lines(text, 1).size())), HasSubstr("line 1: this isn't"));
}

TEST_F(BadImport, RefusesAnotherCodec) {
  auto binary = in_memory(Codec::portable_binary);
  EXPECT_THAT(message_of<UsageError>([&] { import_text(binary, text); }),
              HasSubstr("these events have the codec 'json', and the store has 'portable_binary'"));
  EXPECT_EQ(binary.last_sequence(), GlobalSequence{0});
}

TEST_F(BadImport, RefusesWhatLeavesAGap) {
  auto copy = in_memory();
  EXPECT_THAT(message_of<UsageError>(
                  [&] { import_text(copy, export_of(original, {.from = GlobalSequence{2}})); }),
              HasSubstr("line 2: event 2 can't follow the store's event 0"));
}

TEST_F(BadImport, RefusesWhatContradictsTheStore) {
  const std::vector<std::array<std::string, 3>> changes{
      {"\"id\":\"0", "\"id\":\"1", "its id is "},
      {"order-1", "order-2", "it is version 2 of 'order-1' there"},
      {"\"noted\"", "\"other\"", "its type, schema_version or publishes differs"},
      {"\"recorded_at\":1", "\"recorded_at\":2", "its recorded_at differs"},
      {"\"payload\":{}", "\"metadata\":{\"actor\":\"x\"},\"payload\":{}", "its metadata differs"},
      {"\"payload\":{}", "\"correlation\":\"x\",\"payload\":{}", "its correlation or causation"},
      {"\"payload\":{}", "\"payload\":[]", "its payload differs"}};
  for (const auto& [from, to, expected] : changes) {
    std::string changed = text;
    changed.replace(changed.find(from, first_lines(text, 2).size()), from.size(), to);
    EXPECT_THAT(message_of<UsageError>([&] { import_text(original, changed); }),
                AllOf(HasSubstr("line 3: the store has another event 2: "), HasSubstr(expected)));
  }
  EXPECT_EQ(export_of(original), text);
}

TEST_F(BadImport, RefusesAStoreThatSomebodyElseAppendsTo) {
  auto source = in_memory();
  append(source, "order-1", 1500);
  auto copy = in_memory();
  const sqlite::TransferOptions meanwhile{
      .progress = [&](const sqlite::Progress&) { append(copy, "stock-1"); }};

  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, export_of(source), meanwhile); }),
              HasSubstr("line 1002: somebody else appended to the store meanwhile"));
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{1002});
  EXPECT_THAT(problems_of(copy), IsEmpty());
}

class Bystander final : public TransactionParticipant {
 public:
  std::string_view name() const noexcept override { return "bystander"; }
  std::string_view detail() const noexcept override { return "1"; }
  bool runs_user_code() const noexcept override { return false; }
  void on_append(Transaction&, std::span<const StoredEvent>) override {}
};

TEST_F(BadImport, RefusesAStoreWhoseParticipantsWouldMissTheEvents) {
  auto copy = in_memory();
  Bystander bystander;
  copy.attach(bystander);
  EXPECT_THAT(message_of<UsageError>([&] { import_text(copy, text); }),
              HasSubstr("requires 'bystander' to take part in every append"));
  EXPECT_EQ(copy.last_sequence(), GlobalSequence{0});
  copy.forget_participant("bystander");
  copy.detach(bystander);
  EXPECT_EQ(import_text(copy, text).imported, 3);
}

TEST_F(BadImport, SurvivesAnyText) {
  auto source = in_memory();
  test::RandomHistory{6, clock}.append_to(source, 8);
  const std::string whole = export_of(source);
  std::mt19937 random{3};
  const auto any = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>{0, below - 1}(random);
  };
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string changed = whole;
    const std::size_t at = any(changed.size());
    switch (any(4)) {
      case 0:
        changed[at] = static_cast<char>(any(256));
        break;
      case 1:
        changed.erase(at, 1 + any(30));
        break;
      case 2:
        changed.insert(at, 1, "{}[]\",:\\\n0"[any(10)]);
        break;
      default:
        changed.resize(at);
    }
    auto copy = in_memory();
    try {
      import_text(copy, changed);
    } catch (const UsageError&) {
      ++refused;
    }
    ASSERT_THAT(problems_of(copy), IsEmpty());
  }
  EXPECT_GT(refused, 300);
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
  EXPECT_THAT(message_of<StoreFailed>([&] { sqlite::export_events(store, out); }),
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
  EXPECT_THAT(message_of<StoreFailed>([&] { sqlite::import_events(copy, in); }),
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

  EXPECT_THAT(message_of<CorruptEvent>([&] { sqlite::export_events(*store, out); }),
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
}  // namespace stela
