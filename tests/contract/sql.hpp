// What the contract of the user's SQL is asked of.
#pragma once

#include "contract/event_store.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stela::test {

class SqlContract : public EventStoreContract {
 protected:
  SqlContract() {
    run("CREATE TABLE limits (account TEXT PRIMARY KEY, used INTEGER CHECK (used <= 100), "
        "note TEXT)");
  }

  /// Appends an event.
  static void note(EventLog& log, std::string_view stream) {
    const StreamId id = StreamId::parse(stream);
    const NewEvent event{"noted", 1, false, "{}"};
    const StreamAppend one{id, ExpectedVersion::any(), {&event, 1}};
    log.append({.streams = {&one, 1}});
  }
  void run(std::string_view statement) {
    store->transact([&](Transaction& transaction) { Sql{transaction}.execute(statement); });
  }
  /// What the statement is refused with, between an event and a row that must stand nonetheless.
  std::string refusal_of(std::string_view statement) {
    std::string message;
    store->transact([&](Transaction& transaction) {
      Sql sql{transaction};
      note(transaction, "order-1");
      message = message_of<UsageError>([&] { sql.execute(statement); });
      sql.execute("DELETE FROM limits");
      sql.execute("INSERT INTO limits VALUES ('after', 1, NULL)");
    });
    EXPECT_THAT(test::lines(store->read_stream(StreamId::parse("order-1"), {.from = last()})),
                ::testing::SizeIs(1));
    EXPECT_THAT(limits(), ::testing::ElementsAre("after|1|NULL"));
    return message;
  }
  /// "ada|40|NULL".
  std::vector<std::string> rows(std::string_view query) {
    std::vector<std::string> all;
    store->transact([&](Transaction& transaction) {
      const Rows found = Sql{transaction}.query(query);
      for (std::size_t row = 0; row < found.size(); ++row) {
        std::string line;
        for (std::size_t column = 0; column < found.columns().size(); ++column) {
          line += (column > 0 ? "|" : "") + text_of(found.cell(row, column));
        }
        all.push_back(std::move(line));
      }
    });
    return all;
  }
  std::vector<std::string> limits() { return rows("SELECT * FROM limits ORDER BY account"); }
  std::vector<std::string> events() { return test::lines(store->read_all()); }

 private:
  static std::string text_of(const SqlCell& cell) {
    if (const auto* const number = std::get_if<std::int64_t>(&cell)) return std::to_string(*number);
    if (const auto* const text = std::get_if<std::string>(&cell)) return *text;
    return "NULL";
  }
  StreamVersion last() { return StreamVersion{++appended_}; }

  std::int64_t appended_ = 0;
};

}  // namespace stela::test
