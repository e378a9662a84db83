// One description of a structure, and all that is made from it.
#include "description/description.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace stela::tool::description_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Colour : std::uint8_t { red, green };
std::string_view to_string(Colour colour) {
  return colour == Colour::red ? "red" : "green";
}

struct Parcel {
  std::string name = {};
  std::int64_t weight = 0;
  bool is_fragile = false;
  std::optional<Timestamp> sent_at = {};
  std::optional<std::chrono::microseconds> age = {};
  Colour colour = Colour::red;
  std::string note = {};
};

constexpr Field<Parcel> parcel_fields[] = {
    field<&Parcel::name>("parcel"),
    field<&Parcel::weight>(
        "weight", {.kind = Kind::count, .metric = {.name = "parcel_weight", .help = "How heavy."}}),
    field<&Parcel::is_fragile>("is_fragile"),
    field<&Parcel::sent_at>("sent_at"),
    field<&Parcel::age>("age_s", {.title = "age",
                                  .absent = "none",
                                  .metric = {.name = "parcel_age_seconds", .help = "How old."}}),
    field<&Parcel::colour>("colour"),
    field<&Parcel::note>("note", {.kind = Kind::untrusted}),
    field<[](const Parcel& parcel) { return parcel.name + "!"; }>("cry", {.is_text_only = true}),
};
constexpr Description<Parcel> parcel{
    parcel_fields, {.table = "parcel sent_at weight age_s", .sheet = "cry sent_at age_s weight"}};

const Parcel heavy{.name = "a",
                   .weight = 12'345,
                   .is_fragile = true,
                   .sent_at = Timestamp{1'500'000us},
                   .age = 2'500'000us,
                   .colour = Colour::green,
                   .note = "x\x1b\xff"};

std::vector<std::string> table_of(const std::vector<Parcel>& parcels) {
  Table table{columns_of(parcel)};
  for (const Parcel& each : parcels) table.add(cells_of(parcel, each));
  return table.lines(std::string::npos);
}

TEST(Descriptions, WriteJsonInTheOrderOfTheFields) {
  EXPECT_EQ(to_json(parcel, heavy),
            R"({"parcel":"a","weight":12345,"is_fragile":true,)"
            R"("sent_at":"1970-01-01T00:00:01.500000Z","age_s":2.5,"colour":"green",)"
            R"("note":"x\\x1b\\xff"})");
}

TEST(Descriptions, HaveNullInJsonForWhatIsAbsentOrEmpty) {
  EXPECT_EQ(to_json(parcel, Parcel{}, {{"dry_run", true}, {"path", ""}}),
            R"({"parcel":null,"weight":0,"is_fragile":false,"sent_at":null,"age_s":null,)"
            R"("colour":"red","note":null,"dry_run":true,"path":null})");
}

TEST(Descriptions, MakeTablesWithNumbersOnTheRight) {
  EXPECT_THAT(table_of({heavy, Parcel{.name = "bb"}}),
              ElementsAre("PARCEL  SENT AT               WEIGHT    AGE",
                          "a       1970-01-01 00:00:01Z  12,345  2.5 s",
                          "bb                                 0   none"));
}

TEST(Descriptions, WriteAMetricForEachMeasuredField) {
  MetricWriter one;
  write_metrics(one, parcel, Parcel{.weight = 7});
  EXPECT_EQ(std::move(one).text(),
            "# HELP parcel_weight How heavy.\n# TYPE parcel_weight gauge\nparcel_weight 7\n"
            "# HELP parcel_age_seconds How old.\n# TYPE parcel_age_seconds gauge\n"
            "parcel_age_seconds 0\n");

  MetricWriter many;
  write_metrics_of_each(many, parcel, std::vector{heavy, Parcel{.name = "b", .weight = 7}});
  EXPECT_THAT(std::move(many).text(), HasSubstr("parcel_weight{parcel=\"a\"} 12345\n"
                                                "parcel_weight{parcel=\"b\"} 7\n"
                                                "# HELP parcel_age_seconds"));
}

TEST(Descriptions, NestAsLists) {
  EXPECT_EQ(json_list(parcel, std::vector<Parcel>{}).text, "[]");
  const std::string two = json_list(parcel, std::vector<Parcel>(2)).text;
  EXPECT_THAT(two, HasSubstr(R"("note":null},{"parcel":null)"));
  EXPECT_EQ(to_json({{"list", json_list(parcel, std::vector<Parcel>{})}, {"absent", Value{}}}),
            R"({"list":[],"absent":null})");
}

TEST(Descriptions, DeriveTheKindOfAFieldFromItsType) {
  const Kind kinds[] = {Kind::text,     Kind::count, Kind::flag,      Kind::time,
                        Kind::duration, Kind::text,  Kind::untrusted, Kind::text};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    EXPECT_EQ(parcel_fields[i].kind, kinds[i]) << parcel_fields[i].name;
  }
}

}  // namespace
}  // namespace stela::tool::description_test
