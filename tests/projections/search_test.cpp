// Full-text indexes as read models.
#include "projections/models.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::search_test {
namespace {

using test::lines;
using test::place;
using ::testing::ElementsAre;

/// The notes of all orders, to be searched.
class Notes {
 public:
  static constexpr ProjectorType projector_type{"notes", 1};
  using Events = EventSet<test::OrderNoted>;

  void create(ReadModel& model) {
    model.execute("CREATE VIRTUAL TABLE {notes} USING fts5(id UNINDEXED, text)");
  }
  void project(ReadModel& model, const Recorded<test::OrderNoted>& e) {
    model.execute("INSERT INTO {notes} VALUES (?1, ?2)", e.stream().key(), e->text);
  }
};

void note(EventStore& store, const std::string& key, std::string text) {
  Repository<test::Order> orders{store};
  auto order = orders.load(Id<test::Order>::from(key));
  order.note(std::move(text));
  orders.save(order);
}

void write_notes(EventStore& store) {
  for (const char* const key : {"1", "2", "3"}) place(store, key);
  note(store, "1", "a red house");
  note(store, "2", "red, red and red again");
  note(store, "3", "green");
}

TEST(FullTextIndex, IsSearchedThroughItsPlainName) {
  auto store = sqlite::open_in_memory();
  write_notes(store);
  Projections projections{store};
  projections.add(Notes{});
  Runner{projections}.run_once();
  ModelReader reader{store};

  EXPECT_THAT(lines(reader.query("SELECT id FROM notes WHERE notes MATCH ?1 ORDER BY rank", "red")),
              ElementsAre("2", "1"));
  EXPECT_THAT(lines(reader.query("SELECT n.rowid, highlight(notes, 1, '[', ']') FROM notes AS n "
                                 "WHERE n.text MATCH 'house'")),
              ElementsAre("1 a red [house]"));
  EXPECT_EQ(reader.value<int>("SELECT count(*) FROM notes"), 3);
}

TEST(FullTextIndex, IsSearchedAfterARebuild) {
  auto store = sqlite::open_in_memory();
  write_notes(store);
  Projections projections{store};
  projections.add_inline(Notes{});
  Replayer{projections}.run();
  note(store, "3", "red as well");

  EXPECT_THAT(lines(ModelReader{store}.query("SELECT id FROM notes WHERE notes MATCH 'red' "
                                             "ORDER BY rowid")),
              ElementsAre("1", "2", "3"));
}

TEST(FullTextIndex, KeepsTheViewThatAnEarlierVersionMade) {
  const test::TempDir dir = test::TempDir::in_memory();
  {
    auto store = sqlite::open(dir.file("a.db"));
    Projections projections{store};
    projections.add_inline(Notes{});
    write_notes(store);
  }
  {
    test::RawSqlite raw{dir.file("a.db")};
    raw.run("DROP VIEW notes");
    raw.run("CREATE VIEW \"notes\" AS SELECT * FROM \"notes@1.notes\"");
  }
  auto store = sqlite::open(dir.file("a.db"));
  Projections projections{store};
  projections.add_inline(Notes{});

  EXPECT_EQ(ModelReader{store}.value<int>("SELECT count(*) FROM notes"), 3);
  Replayer{projections}.run();
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT count(*) FROM notes WHERE notes MATCH 'red'"), 2);
}

}  // namespace
}  // namespace stela::search_test
