// What a reader remembers of the streams that it met.
#include "database/sqlite/connection.hpp"
#include "sqlite/event_rows.hpp"
#include "support/histories.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>

#include <gtest/gtest.h>

namespace stela::stream_names_test {
namespace {

class StreamNamesTest : public ::testing::Test {
 protected:
  StreamNamesTest() {
    test::append(*test::open_store(path), "order-1");
    connection = std::make_unique<sqlite::Connection>(path, sqlite::ConnectionOptions{});
  }

  /// The name of the first stream, which the database calls order-1.
  std::string first() { return names.find(1, *connection).name(); }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
  std::unique_ptr<sqlite::Connection> connection;
  sqlite::StreamNames names;
};

TEST_F(StreamNamesTest, AreForgottenWhereThereAreTooMany) {
  const StreamId remembered = StreamId::parse("order-remembered");
  const auto max = static_cast<std::int64_t>(sqlite::StreamNames::max_size);
  for (std::int64_t number = 1; number <= max; ++number) names.add(number, remembered);
  names.trim();
  EXPECT_EQ(first(), remembered.name());
  names.add(max + 1, remembered);
  EXPECT_EQ(first(), remembered.name());
  names.trim();
  EXPECT_EQ(first(), "order-1");
}

}  // namespace
}  // namespace stela::stream_names_test
