// Every type header of cereal's that makes sense in an event, against both codecs: it comes back
// equal, and portable binary is cereal's own, byte for byte and readable both ways.
#include "framework/codec/payloads.hpp"

#include <stela/framework.hpp>

#include <gtest/gtest.h>
#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/atomic.hpp>
#include <cereal/types/base_class.hpp>
#include <cereal/types/bitset.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/forward_list.hpp>
#include <cereal/types/functional.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/queue.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/stack.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/valarray.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>

#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

namespace stela::test {
namespace {

using namespace std::chrono_literals;

template <class T>
std::string cereal_bytes(const T& value) {
  std::ostringstream out;
  cereal::PortableBinaryOutputArchive archive{
      out, cereal::PortableBinaryOutputArchive::Options::LittleEndian()};
  archive(value);
  return out.str();
}

template <class T>
T from_cereal_bytes(const std::string& bytes) {
  std::istringstream in{bytes};
  cereal::PortableBinaryInputArchive archive{in};
  T value{};
  archive(value);
  return value;
}

/// Equal, for types with and without an `==` of their own.
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
template <class T>
bool same(const std::unique_ptr<T>& a, const std::unique_ptr<T>& b) {
  return a && b ? *a == *b : a == b;
}
template <class T>
bool same(const std::valarray<T>& a, const std::valarray<T>& b) {
  return std::equal(std::begin(a), std::end(a), std::begin(b), std::end(b));
}
template <class T>
bool same(std::priority_queue<T> a, std::priority_queue<T> b) {
  for (; !a.empty() && !b.empty() && a.top() == b.top(); a.pop(), b.pop()) {
  }
  return a.empty() && b.empty();
}

/// `value` as the field of a struct.
template <class T>
std::string boxed_bytes(Codec codec, const T& value) {
  return bytes_of(codec, Box<const T&>{value});
}

template <class T>
void expect_comes_back(const T& value) {
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    const std::string bytes = boxed_bytes(codec, value);
    const T decoded = codec::decode<Box<T>>(codec, bytes).v;
    EXPECT_TRUE(same(decoded, value)) << to_string(codec) << ' ' << bytes;
    EXPECT_EQ(boxed_bytes(codec, decoded), bytes);
  }
}

/// As expect_comes_back; cereal reads our bytes, and we read cereal's.
template <class T>
void expect_readable_both_ways(const T& value) {
  expect_comes_back(value);
  const std::string ours = boxed_bytes(Codec::portable_binary, value);
  EXPECT_TRUE(same(from_cereal_bytes<Box<T>>(ours).v, value));
  const std::string cereals = cereal_bytes(Box<const T&>{value});
  EXPECT_TRUE(same(codec::decode<Box<T>>(Codec::portable_binary, cereals).v, value));
}

/// As expect_readable_both_ways; the bytes are the same, too.
template <class T>
void expect_same_bytes(const T& value) {
  expect_readable_both_ways(value);
  EXPECT_EQ(boxed_bytes(Codec::portable_binary, value), cereal_bytes(Box<const T&>{value}));
}

TEST(CerealTypes, Numbers) {
  expect_same_bytes(std::numeric_limits<std::int8_t>::min());
  expect_same_bytes(std::numeric_limits<std::uint8_t>::max());
  expect_same_bytes(std::numeric_limits<std::int16_t>::min());
  expect_same_bytes(std::numeric_limits<std::uint32_t>::max());
  expect_same_bytes(std::numeric_limits<std::int64_t>::min());
  expect_same_bytes(std::numeric_limits<std::uint64_t>::max());
  expect_same_bytes(std::numeric_limits<double>::denorm_min());
  expect_same_bytes(std::numeric_limits<float>::lowest());
  expect_same_bytes(std::numeric_limits<float>::max());
  expect_same_bytes('x');
  expect_same_bytes(true);
}

TEST(CerealTypes, NumbersThatOnlyBinaryHolds) {
  const std::string bytes =
      bytes_of(Codec::portable_binary, Box<double>{std::numeric_limits<double>::infinity()});
  EXPECT_EQ(bytes, cereal_bytes(Box<double>{std::numeric_limits<double>::infinity()}));
  EXPECT_TRUE(std::isnan(
      codec::decode<Box<double>>(Codec::portable_binary, cereal_bytes(Box<double>{std::nan("")}))
          .v));
}

TEST(CerealTypes, String) {
  expect_same_bytes(std::string{});
  expect_same_bytes(std::string{"a\0b\x1f\"\\ \u00fc \U0001F600", 14});
  expect_same_bytes(std::string(100'000, 'x'));
}

TEST(CerealTypes, StringOfOtherCharactersInBinaryAlone) {
  const std::u16string text = u"gr\u00fcn";
  const std::string bytes = bytes_of(Codec::portable_binary, std::vector<std::uint16_t>{1, 2});
  EXPECT_EQ(bytes, cereal_bytes(std::u16string{1, 2}));
  static_assert(!codec::Serializable<std::u16string>);
  EXPECT_EQ(from_cereal_bytes<std::u16string>(cereal_bytes(text)), text);
}

TEST(CerealTypes, Vector) {
  expect_same_bytes(std::vector<int>{1, 2, 3});
  expect_same_bytes(std::vector<bool>{true, false, true});
  expect_same_bytes(std::vector<std::string>{"a", "", "b"});
  expect_same_bytes(std::vector<std::vector<double>>{{0.1}, {}, {-0.0, 1e300}});
  expect_same_bytes(std::vector<std::uint8_t>(300, 7));
}

TEST(CerealTypes, ListDequeAndForwardList) {
  expect_same_bytes(std::list<std::string>{"a", "b"});
  expect_same_bytes(std::deque<int>{1, 2});
  expect_same_bytes(std::forward_list<int>{3, 1, 2});
}

TEST(CerealTypes, Array) {
  expect_same_bytes(std::array<int, 3>{1, 2, 3});
  expect_same_bytes(std::array<std::string, 2>{"a", "b"});
  expect_same_bytes(std::array<bool, 2>{true, false});
  expect_same_bytes(std::array<std::array<float, 2>, 2>{{{1, 2}, {3, 4}}});
}

struct PlainArrays {
  int numbers[3] = {1, 2, 3};
  std::string texts[2] = {"a", "b"};
  bool flags[2] = {true, false};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(numbers), CEREAL_NVP(texts), CEREAL_NVP(flags));
  }
  friend bool operator==(const PlainArrays& a, const PlainArrays& b) {
    return std::ranges::equal(a.numbers, b.numbers) && std::ranges::equal(a.texts, b.texts) &&
           std::ranges::equal(a.flags, b.flags);
  }
};

TEST(CerealTypes, PlainArray) {
  expect_same_bytes(PlainArrays{{4, 5, 6}, {"x", "y"}, {false, true}});
  EXPECT_EQ(json_of(PlainArrays{}),
            R"({"numbers":[1,2,3],"texts":["a","b"],"flags":[true,false]})");
}

TEST(CerealTypes, Set) {
  expect_same_bytes(std::set<std::string>{"b", "a"});
  expect_same_bytes(std::multiset<int>{2, 1, 2});
  expect_same_bytes(std::set<int, std::greater<>>{1, 2, 3});
}

TEST(CerealTypes, Map) {
  expect_same_bytes(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  expect_same_bytes(std::map<int, std::string>{{-1, "a"}, {2, "b"}});
  expect_same_bytes(std::map<std::pair<int, int>, double>{{{1, 2}, 0.5}});
  expect_same_bytes(std::map<std::string, std::vector<std::map<std::string, int>>>{{"a", {{}}}});
}

TEST(CerealTypes, MultimapInItsOwnOrder) {
  const std::multimap<std::string, int> map{{"a", 2}, {"a", 1}, {"b", 3}};
  expect_comes_back(map);
  EXPECT_EQ(bytes_of(Codec::portable_binary, map), cereal_bytes(map));
}

TEST(CerealTypes, UnorderedContainers) {
  expect_readable_both_ways(std::unordered_map<std::string, int>{{"a", 1}, {"b", 2}, {"c", 3}});
  expect_readable_both_ways(std::unordered_map<int, std::string>{{1, "a"}, {2, "b"}, {3, ""}});
  expect_readable_both_ways(std::unordered_set<std::string>{"a", "b", "c"});
  expect_readable_both_ways(std::unordered_multiset<int>{1, 1, 2});
  expect_readable_both_ways(std::unordered_multimap<int, int>{{1, 2}, {1, 1}, {2, 0}});
  expect_readable_both_ways(std::unordered_map<Uuid, int>{{Uuid{}, 1}});
}

TEST(CerealTypes, UnorderedContainersThatAreEqualHaveEqualBytes) {
  std::unordered_map<int, std::string> forward;
  std::unordered_map<int, std::string> backward;
  backward.rehash(1000);
  for (int i = 0; i < 100; ++i) forward[i] = "x";
  for (int i = 100; i-- > 0;) backward[i] = "x";
  ASSERT_NE(cereal_bytes(forward), cereal_bytes(backward));

  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    EXPECT_EQ(bytes_of(codec, forward), bytes_of(codec, backward));
  }
}

TEST(CerealTypes, Bitset) {
  expect_same_bytes(std::bitset<8>{0b10110001});
  expect_same_bytes(std::bitset<70>{}.set(69).set(0));
}

TEST(CerealTypes, TupleAndPair) {
  expect_same_bytes(std::tuple<int, std::string, std::vector<int>>{1, "a", {2}});
  expect_same_bytes(std::pair<std::string, double>{"a", 0.5});
  expect_same_bytes(std::tuple<std::optional<int>, std::tuple<>>{std::nullopt, {}});
}

TEST(CerealTypes, Optional) {
  expect_same_bytes(std::optional<int>{});
  expect_same_bytes(std::optional<std::vector<int>>{{1, 2}});
}

TEST(CerealTypes, Variant) {
  using Any = std::variant<std::monostate, int, std::string, std::vector<int>>;
  expect_same_bytes(Any{});
  expect_same_bytes(Any{1});
  expect_same_bytes(Any{std::string{"a"}});
  expect_same_bytes(std::vector<Any>{1, "b", std::vector<int>{2}});
}

TEST(CerealTypes, Memory) {
  expect_same_bytes(std::make_unique<std::string>("a"));
  expect_same_bytes(std::unique_ptr<int>{});
}

TEST(CerealTypes, Chrono) {
  expect_same_bytes(std::chrono::milliseconds{-5});
  expect_same_bytes(Timestamp{std::chrono::sys_days{2026y / 1 / 2} + 3us});
  expect_same_bytes(std::chrono::system_clock::time_point{5ns});
  expect_same_bytes(std::chrono::duration<double, std::milli>{0.5});
}

TEST(CerealTypes, ComplexAndValarray) {
  expect_same_bytes(std::complex<float>{1, -2});
  expect_same_bytes(std::valarray<double>{1, 2, 3});
  expect_same_bytes(std::valarray<std::string>{"a", "b"});
}

TEST(CerealTypes, StackQueueAndPriorityQueue) {
  expect_same_bytes(std::stack<int>{{1, 2, 3}});
  expect_same_bytes(std::queue<std::string>{{"a", "b"}});
  std::priority_queue<int> heap;
  for (const int i : {3, 1, 2}) heap.push(i);
  expect_same_bytes(heap);
}

struct Counter {
  std::atomic<int> hits{0};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(hits));
  }
};

TEST(CerealTypes, Atomic) {
  Counter counter;
  counter.hits = 3;
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    Counter decoded;
    codec::decode(codec, bytes_of(codec, counter), decoded);
    EXPECT_EQ(decoded.hits, 3);
  }
  EXPECT_EQ(json_of(counter), R"({"hits":{"atomic_data":3}})");
}

enum class Plain : std::int16_t { low = -2, high = 300 };
enum class Named : std::uint8_t { one, two };
constexpr auto enum_names(Named) {
  return std::array{std::pair{Named::one, "one"}, std::pair{Named::two, "two"}};
}

TEST(CerealTypes, Enums) {
  expect_same_bytes(Plain::low);
  expect_same_bytes(Plain::high);
  expect_same_bytes(Named::two);
  expect_same_bytes(std::map<Named, Plain>{{Named::one, Plain::low}});
}

struct Basket {
  static constexpr std::string_view category = "basket";
};

TEST(CerealTypes, ValuesOfStela) {
  expect_same_bytes(make_uuid());
  expect_same_bytes(Id<Basket>::generate());
  expect_same_bytes(std::map<Id<Basket>, Uuid>{{Id<Basket>::from("1"), make_uuid()}});
  EXPECT_EQ(bytes_of(Codec::portable_binary, make_uuid()).size(), 1u + 16u);
}

}  // namespace

// What follows serialises itself in each of the ways that cereal knows.

struct MemberSaveLoad {
  int a = 0;
  std::string b;

  template <class Archive>
  void save(Archive& archive) const {
    archive(CEREAL_NVP(a), CEREAL_NVP(b));
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(CEREAL_NVP(a), CEREAL_NVP(b));
  }
  friend bool operator==(const MemberSaveLoad&, const MemberSaveLoad&) = default;
};

struct MemberMinimal {
  int a = 0;

  template <class Archive>
  int save_minimal(const Archive&) const {
    return a;
  }
  template <class Archive>
  void load_minimal(const Archive&, const int& value) {
    a = value;
  }
  friend auto operator<=>(const MemberMinimal&, const MemberMinimal&) = default;
};

struct FreeSerialize {
  int a = 0;
  friend bool operator==(const FreeSerialize&, const FreeSerialize&) = default;
};
template <class Archive>
void serialize(Archive& archive, FreeSerialize& value) {
  archive(cereal::make_nvp("a", value.a));
}

struct FreeSaveLoad {
  int a = 0;
  friend bool operator==(const FreeSaveLoad&, const FreeSaveLoad&) = default;
};
template <class Archive>
void save(Archive& archive, const FreeSaveLoad& value) {
  archive(cereal::make_nvp("a", value.a));
}
template <class Archive>
void load(Archive& archive, FreeSaveLoad& value) {
  archive(cereal::make_nvp("a", value.a));
}

struct FreeMinimal {
  std::string a;
  friend auto operator<=>(const FreeMinimal&, const FreeMinimal&) = default;
};
template <class Archive>
std::string save_minimal(const Archive&, const FreeMinimal& value) {
  return value.a;
}
template <class Archive>
void load_minimal(const Archive&, FreeMinimal& value, const std::string& text) {
  value.a = text;
}

class PrivateSerialize {
 public:
  PrivateSerialize() = default;
  explicit PrivateSerialize(int a) : a_{a} {}
  friend bool operator==(const PrivateSerialize&, const PrivateSerialize&) = default;

 private:
  friend class cereal::access;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(cereal::make_nvp("a", a_));
  }
  int a_ = 0;
};

struct Versioned {
  int a = 0;
  int since_2 = 0;

  template <class Archive>
  void serialize(Archive& archive, std::uint32_t version) {
    archive(CEREAL_NVP(a));
    if (version >= 2) archive(CEREAL_NVP(since_2));
  }
  friend auto operator<=>(const Versioned&, const Versioned&) = default;
};

struct VersionedHash {
  std::size_t operator()(const Versioned& value) const noexcept {
    return static_cast<std::size_t>(value.a);
  }
};

struct VersionedChild : Versioned {
  int b = 0;

  template <class Archive>
  void serialize(Archive& archive, std::uint32_t) {
    archive(cereal::base_class<Versioned>(this), CEREAL_NVP(b));
  }
};

}  // namespace stela::test

CEREAL_CLASS_VERSION(stela::test::Versioned, 2)
CEREAL_CLASS_VERSION(stela::test::VersionedChild, 1)

namespace stela::test {
namespace {

TEST(CerealFunctions, MemberSaveAndLoad) {
  expect_same_bytes(MemberSaveLoad{1, "b"});
}

TEST(CerealFunctions, MemberMinimal) {
  expect_same_bytes(MemberMinimal{5});
  expect_same_bytes(std::vector<MemberMinimal>{{1}, {2}});
  expect_same_bytes(std::optional<MemberMinimal>{{1}});
  EXPECT_EQ(form_of(MemberMinimal{5}), "5");
}

TEST(CerealFunctions, FreeSerialize) {
  expect_same_bytes(FreeSerialize{1});
}

TEST(CerealFunctions, FreeSaveAndLoad) {
  expect_same_bytes(FreeSaveLoad{1});
}

TEST(CerealFunctions, FreeMinimal) {
  expect_same_bytes(FreeMinimal{"x"});
  expect_same_bytes(std::map<FreeMinimal, int>{{{"x"}, 1}});
  EXPECT_EQ(form_of(std::map<FreeMinimal, int>{{{"x"}, 1}}), R"({"x":1})");
}

TEST(CerealFunctions, PrivateSerialize) {
  expect_same_bytes(PrivateSerialize{4});
}

TEST(CerealFunctions, ClassVersions) {
  expect_same_bytes(Versioned{1, 2});
  expect_same_bytes(std::vector<Versioned>{{1, 2}, {3, 4}});
  EXPECT_EQ(json_of(std::vector<Versioned>{{1, 2}, {3, 4}}),
            R"([{"cereal_class_version":2,"a":1,"since_2":2},{"a":3,"since_2":4}])");
  EXPECT_EQ(codec::decode<Versioned>(Codec::json, R"({"cereal_class_version":1,"a":1})").since_2,
            0);
}

TEST(CerealFunctions, ClassVersionsInUnorderedContainers) {
  expect_readable_both_ways(std::unordered_set<Versioned, VersionedHash>{{1, 2}, {3, 4}, {2, 9}});
}

TEST(CerealFunctions, ClassVersionsOfAClassAndItsBaseHaveNoPlaceInOneObject) {
  EXPECT_EQ(encode_refusal(Codec::json, VersionedChild{}),
            "cereal_class_version is needed twice, for a class and for its base; give one of them "
            "no class version");
}

}  // namespace
}  // namespace stela::test
