// Exports of whole stores as each version wrote them: each is imported, sound, and exported again
// as the newest version writes it.
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#ifdef STELA_TESTS_POSTGRES
#include "support/postgres_server.hpp"

#include <stela/eventstore/postgres.hpp>
#endif

#include <stela/eventstore/transfer.hpp>
#include <stela/outbox/care.hpp>
#include <stela/projections/transfer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace stela::test::golden_exports_test {
namespace {

using ::testing::IsEmpty;

namespace fs = std::filesystem;

const fs::path folder{STELA_GOLDEN_EXPORTS};

/// "0.1.0/leased", …: every export of every version, in the order of versions.
std::vector<std::string> all_exports() {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (entry.path().extension() != ".jsonl") continue;
    found.push_back(relative(entry.path(), folder).replace_extension().string());
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return found;
}

std::string text_of(const std::string& name) {
  std::ifstream in{folder / (name + ".jsonl")};
  return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

/// As the newest version writes the same store.
std::string newest_text_of(const std::string& name) {
  const std::string newest = fs::path{all_exports().back()}.parent_path();
  return text_of(newest / fs::path{name}.filename());
}

class GoldenExport : public ::testing::TestWithParam<std::string> {
 protected:
  Codec codec() const {
    const bool is_json = text_of(GetParam()).find(R"("codec":"json")") < 100;
    return is_json ? Codec::json : Codec::portable_binary;
  }
  Store on_sqlite(const std::string& name) const {
    return sqlite::open(dir_.file(name), {.codec = codec()});
  }

  void import(Store& store, const std::string& text) {
    std::istringstream in{text};
    EXPECT_TRUE(import_store(store, in, {.states = states_}).finished);
  }
  std::string exported(Store& store) {
    std::ostringstream out;
    EXPECT_TRUE(export_store(store, out, {.states = states_}).finished);
    return out.str();
  }
  static std::vector<std::string> problems(Store& store, bool is_thorough) {
    const auto check = outbox_check();
    IntegrityCheck* const checks[] = {check.get()};
    return problems_of(store, {.thorough = is_thorough, .checks = checks});
  }

 private:
  const TempDir dir_ = TempDir::in_memory();
  const std::unique_ptr<StateTransfer> outbox_ = outbox_state();
  const std::unique_ptr<StateTransfer> projections_ = projection_state();
  std::array<StateTransfer*, 2> states_{outbox_.get(), projections_.get()};
};

INSTANTIATE_TEST_SUITE_P(, GoldenExport, ::testing::ValuesIn(all_exports()), [](const auto& one) {
  std::string name = "V" + one.param;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

TEST_P(GoldenExport, IsImportedAndSoundAndExportedAgain) {
  Store store = on_sqlite("shop.db");

  import(store, text_of(GetParam()));

  EXPECT_THAT(problems(store, true), IsEmpty());
  EXPECT_EQ(exported(store), newest_text_of(GetParam()));
}

#ifdef STELA_TESTS_POSTGRES
TEST_P(GoldenExport, MovesToPostgresAndBack) {
  const PostgresServer server;
  Store moved = postgres::open(server.url(), {.codec = codec()});
  Store back = on_sqlite("back.db");

  import(moved, text_of(GetParam()));
  EXPECT_THAT(problems(moved, false), IsEmpty());
  import(back, exported(moved));

  EXPECT_EQ(exported(back), newest_text_of(GetParam()));
}
#endif

struct State {
  /// Empty: an event.
  const char* table;
  const char* pattern;
};

/// What an event, a message, a timer… can be.
constexpr State states[] = {
    {"", R"("type":"order.entered","schema_version":1)"},
    {"", R"("type":"order.placed","schema_version":2)"},
    {"", R"("publishes":false)"},
    {"", R"("payload_base64")"},
    {"", R"("metadata":\{)"},
    {"", R"("causation":")"},
    {"", R"("tags":\[)"},
    {"", R"("type":"stela.forgotten")"},
    {"append_ids", "request-17"},
    {"outbox_settings", R"("fence":"stream","leasing":1)"},
    {"outbox_settings", R"("fence":"subject","leasing":1)"},
    {"outbox_settings", R"("fence":"none","leasing":0)"},
    {"outbox_generations", R"("partition_count":8)"},
    {"outbox_messages", R"("attempts":0)"},
    {"outbox_messages", R"("attempts":[1-9].*"last_error":")"},
    {"outbox_parked", R"("reason":"refused")"},
    {"outbox_parked", R"("reason":"attempts")"},
    {"outbox_parked", R"("reason":"behind")"},
    {"outbox_parked", R"("failure":"f[0-9a-f]+","failure_class":")"},
    {"outbox_parked", R"("was_lost":1)"},
    {"outbox_discarded", R"("reason":"discarded")"},
    {"outbox_discarded", R"("reason":"skipped")"},
    {"outbox_redeliveries", R"("kind":"retry")"},
    {"outbox_redeliveries", R"("kind":"republish")"},
    {"outbox_redeliveries", R"("was_lost":1)"},
    {"outbox_batches", R"("redelivery":0)"},
    {"outbox_batches", R"("redelivery":[1-9])"},
    {"outbox_actions", R"("item_of":0.*"planned":[1-9])"},
    {"outbox_actions", R"("item_of":[1-9])"},
    {"outbox_partitions", R"("flight_count":[1-9])"},
    {"outbox_partitions", R"("attempts":[1-9])"},
    {"outbox_partitions", R"("stopped":"poison")"},
    {"outbox_partitions", R"("retired_at":[1-9])"},
    {"outbox_partitions", R"("adopted":1)"},
    {"outbox_partitions", R"("uncompared_since":[1-9])"},
    {"outbox_numbers", R"("last_redelivery":[1-9])"},
    {"projections", R"("failing":[1-9].*"halted":0)"},
    {"projections", R"("failing":[1-9].*"halted":1)"},
    {"projection_parked", R"("state":"parked")"},
    {"projection_parked", R"("state":"retry")"},
    {"projection_parked", R"("state":"skipped")"},
    {"projection_parked", R"("instance":")"},
    {"projection_processes", R"("fired":[1-9])"},
    {"projection_timers", R"("state":"pending")"},
    {"projection_timers", R"("state":"unknown")"},
    {"projection_timers", R"("state":"parked".*"error":"[^"])"},
    {"projection_timers", R"("recurrence":"every )"},
    {"projection_timer_holds", "moving house"},
    {"projection_timer_actions", R"("what":"move")"},
};

bool is_in(const std::string& text, const State& state) {
  const std::string table = state.table;
  const std::string begin = table.empty() ? R"({"sequence":)" : R"({"state":")" + table + '"';
  const std::regex pattern{state.pattern};
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(begin) && std::regex_search(line, pattern)) return true;
  }
  return false;
}

TEST(GoldenExports, HaveEveryState) {
  std::string all;
  for (const std::string& name : all_exports()) all += text_of(name);

  for (const State& state : states) {
    EXPECT_TRUE(is_in(all, state)) << state.table << ' ' << state.pattern;
  }
}

}  // namespace
}  // namespace stela::test::golden_exports_test
