// Settings that are described once: what they allow, read and write.
#include <stela/framework/error.hpp>
#include <stela/framework/settings.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>

namespace stela::settings_test {
namespace {

using namespace std::chrono_literals;

enum class Speed : std::uint8_t { slow, fast };
std::string_view to_string(Speed speed) {
  return speed == Speed::slow ? "slow" : speed == Speed::fast ? "fast" : "?";
}

struct Engine {
  int cylinders = 4;
};
struct Car {
  std::chrono::hours rest{2};
  std::chrono::milliseconds patience{500};
  double slack = 0.5;
  std::string name = "a";
  Speed speed = Speed::slow;
  std::optional<bool> is_red = {};
  Engine engine = {};
};

constexpr Setting<Car> car_settings[] = {
    setting<&Car::rest>("rest", "between rides", {.range = {.least = 3'600'000}}),
    setting<&Car::patience>("patience", "at lights", {.range = some_time}),
    setting<&Car::slack>("slack", "of the belt", {.range = {0, 1}}),
    setting<&Car::name>("name", "on the door", {.range = {0, 3}}),
    setting<&Car::speed>("speed", "on the road", {.choices = "slow|fast"}),
    setting<&Car::is_red>("is_red", "the paint", {.unset = "false"}),
    setting<&Car::engine, &Engine::cylinders>("cylinders", "of the engine", {.range = {1, 12}}),
};

std::string problem_with(const Car& car) {
  try {
    check_ranges(std::span<const Setting<Car>>{car_settings}, car);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "none";
}

TEST(Settings, NameTheValueAndTheRange) {
  EXPECT_EQ(problem_with({}), "none");
  EXPECT_EQ(problem_with({.rest = 0h}), "rest is 0 ms; it must be 1 h or more");
  EXPECT_EQ(problem_with({.patience = -1s}),
            "patience is -1000 ms; it must be above 0, and at most 8760 h");
  EXPECT_EQ(problem_with({.slack = 1.5}), "slack is 1.5; it must be 0 to 1");
  EXPECT_EQ(problem_with({.slack = std::numeric_limits<double>::quiet_NaN()}),
            "slack is not a number; it must be 0 to 1");
  EXPECT_EQ(problem_with({.name = "four"}), "name is 4 bytes; it must be at most 3 bytes");
  EXPECT_EQ(problem_with({.engine = {.cylinders = 13}}), "cylinders is 13; it must be 1 to 12");
}

TEST(Settings, AllowTheirChoicesOnly) {
  const SettingFacts& speed = car_settings[4];
  EXPECT_TRUE(allows(speed, std::string{"fast"}));
  EXPECT_FALSE(allows(speed, std::string{"slow|fast"}));
  EXPECT_FALSE(allows(speed, std::string{""}));
}

TEST(Settings, ReadAndWriteTheirMember) {
  Car car;
  const SettingValue values[] = {3'600'000ms,         7ms,  0.25,           std::string{"b"},
                                 std::string{"fast"}, true, std::int64_t{6}};
  EXPECT_FALSE(car_settings[5].get(car)) << "nobody has set it";
  for (std::size_t i = 0; i < std::size(values); ++i) {
    car_settings[i].set(car, values[i]);
    EXPECT_EQ(car_settings[i].get(car), values[i]) << car_settings[i].name;
  }
  EXPECT_EQ(car.rest, 1h);
  EXPECT_EQ(car.speed, Speed::fast);
  EXPECT_EQ(car.engine.cylinders, 6);
}

TEST(Settings, KnowTheirKindByTheirMember) {
  using Kind = SettingFacts::Kind;
  const Kind kinds[] = {Kind::duration, Kind::duration, Kind::number, Kind::text,
                        Kind::choice,   Kind::flag,     Kind::integer};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    EXPECT_EQ(car_settings[i].kind, kinds[i]) << car_settings[i].name;
  }
}

}  // namespace
}  // namespace stela::settings_test
