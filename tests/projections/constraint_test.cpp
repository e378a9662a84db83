#include "projections/models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stela::constraint_test {
namespace {

using test::place;

/// A table and its indexes and triggers as a test wants them. Its rows are a customer and an
/// amount, NULL for 0.
class Customers {
 public:
  static constexpr ProjectorType projector_type{"customers", 1};
  using Events = EventSet<test::OrderPlaced>;

  explicit Customers(std::vector<std::string> definitions) : definitions_{std::move(definitions)} {}

  void create(ReadModel& model) {
    for (const std::string& one : definitions_) model.execute(one);
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) {
    model.execute("INSERT INTO {people} VALUES (?1, nullif(?2, 0))", e->customer, e->total_cents);
  }

 private:
  std::vector<std::string> definitions_;
};

std::string describe(const ConstraintViolated& e) {
  const Constraint& c = e.constraint();
  std::string text{to_string(e.code())};
  text += ' ' + c.projector + " table:" + c.table + " columns:";
  for (const std::string& column : c.columns) text += '[' + column + ']';
  return text + " name:" + c.name;
}

/// What an append of (jane, 100) and then (`customer`, `cents`) ends with.
std::string refusal(std::vector<std::string> definitions, const std::string& customer,
                    std::int64_t cents) {
  auto store = sqlite::open_in_memory();
  Projections projections{store};
  projections.add_inline(Customers{std::move(definitions)});
  Repository<test::Order> orders{store};
  place(store, "1", 100);
  auto order = test::Order::place(Id<test::Order>::from("2"), customer, cents);
  try {
    orders.save(order);
  } catch (const ConstraintViolated& e) {
    EXPECT_EQ(store.last_sequence(), GlobalSequence{1});
    EXPECT_FALSE(e.is_retryable());
    return describe(e);
  }
  return "nothing was thrown";
}

TEST(ViolatedConstraint, OfUniquenessNamesTableAndColumns) {
  EXPECT_EQ(refusal({"CREATE TABLE {people} (name TEXT, n INTEGER, UNIQUE (name, n)) STRICT"},
                    "jane", 100),
            "uniqueness_violated customers table:people columns:[name][n] name:");
  EXPECT_EQ(refusal({"CREATE TABLE {people} (name TEXT, id INTEGER PRIMARY KEY)"}, "joe", 100),
            "uniqueness_violated customers table:people columns:[id] name:");
}

TEST(ViolatedConstraint, OfAnIndexOnAnExpressionNamesTheIndex) {
  EXPECT_EQ(refusal({"CREATE TABLE {people} (name TEXT, n INTEGER) STRICT",
                     "CREATE UNIQUE INDEX {by_name} ON {people} (lower(name))"},
                    "JANE", 100),
            "uniqueness_violated customers table:people columns: name:by_name");
}

TEST(ViolatedConstraint, OfACheckIsAnErrorOfItsOwn) {
  EXPECT_EQ(refusal({"CREATE TABLE {people} (name, n INTEGER CHECK (n > 0)) "}, "joe", -1),
            "constraint_violated customers table: columns: name:n > 0");
  EXPECT_EQ(
      refusal({"CREATE TABLE {people} (name, n, CONSTRAINT positive CHECK (n > 0))"}, "joe", -1),
      "constraint_violated customers table: columns: name:positive");
}

TEST(ViolatedConstraint, OfAColumnNamesTheColumn) {
  EXPECT_EQ(refusal({"CREATE TABLE {people} (name TEXT, n INTEGER NOT NULL) STRICT"}, "joe", 0),
            "constraint_violated customers table:people columns:[n] name:");
  EXPECT_EQ(refusal({"CREATE TABLE {people} (name TEXT, n INTEGER, CHECK (n IS NOT 7))",
                     "CREATE TABLE {typed} (n INTEGER) STRICT",
                     "CREATE TRIGGER {copy} AFTER INSERT ON {people} WHEN new.name = 'joe' BEGIN "
                     "INSERT INTO {typed} VALUES (new.name); END"},
                    "joe", 1),
            "constraint_violated customers table:typed columns:[n] name:");
}

TEST(ViolatedConstraint, OfATriggerCarriesItsText) {
  EXPECT_EQ(refusal({"CREATE TABLE {people} (name TEXT, n INTEGER) STRICT",
                     "CREATE TRIGGER {one} BEFORE INSERT ON {people} WHEN new.name = 'joe' BEGIN "
                     "SELECT RAISE(ABORT, 'not joe'); END"},
                    "joe", 1),
            "constraint_violated customers table: columns: name:not joe");
}

}  // namespace
}  // namespace stela::constraint_test
