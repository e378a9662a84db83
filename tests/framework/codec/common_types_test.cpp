// What an event can hold without a header of cereal's.
#include <stela/framework.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace stela::common_types_test {
namespace {

struct Booked {
  std::optional<std::string> guest;
  std::optional<Timestamp> paid_at;
  Timestamp booked_at;
  std::chrono::minutes stay{};
  std::vector<std::int64_t> rooms;
  std::array<int, 2> floors{};
  std::map<std::string, int> extras;
  std::unordered_map<std::string, int> prices;
  std::set<std::string> tags;
  std::unordered_set<int> keys;
  std::variant<int, std::string> desk;
  std::tuple<int, bool> view;
  std::pair<int, int> beds;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(guest), CEREAL_NVP(paid_at), CEREAL_NVP(booked_at), CEREAL_NVP(stay),
            CEREAL_NVP(rooms), CEREAL_NVP(floors), CEREAL_NVP(extras), CEREAL_NVP(prices),
            CEREAL_NVP(tags), CEREAL_NVP(keys), CEREAL_NVP(desk), CEREAL_NVP(view),
            CEREAL_NVP(beds));
  }
  friend bool operator==(const Booked&, const Booked&) = default;
};

class CommonTypes : public ::testing::TestWithParam<Codec> {};

TEST_P(CommonTypes, NeedNoHeaderOfCereals) {
  const Timestamp now{std::chrono::microseconds{1'790'000'000'000'000}};
  const Booked booked{.guest = "ada",
                      .paid_at = now,
                      .booked_at = now,
                      .stay = std::chrono::minutes{90},
                      .rooms = {7, 8},
                      .floors = {1, 2},
                      .extras = {{"crib", 1}},
                      .prices = {{"room", 90}},
                      .tags = {"quiet"},
                      .keys = {3},
                      .desk = "north",
                      .view = {1, true},
                      .beds = {1, 2}};
  std::string bytes;
  codec::encode(GetParam(), booked, bytes);

  EXPECT_EQ(codec::decode<Booked>(GetParam(), bytes), booked);
}

INSTANTIATE_TEST_SUITE_P(Codecs, CommonTypes,
                         ::testing::Values(Codec::json, Codec::portable_binary),
                         [](const auto& codec) { return std::string{to_string(codec.param)}; });

}  // namespace
}  // namespace stela::common_types_test
