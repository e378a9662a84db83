// Values for property tests.
#pragma once

#include "support/rich_event.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace stela::test {

/// One code point as UTF-8; never a surrogate.
inline std::string utf8_of(std::uint32_t code) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
  if (code < 0x10000) {
    return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
  }
  return {byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)),
          byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
}

/// Any Unicode text, the awkward parts of it often.
inline rc::Gen<std::string> any_text() {
  const auto code = rc::gen::weightedOneOf<std::uint32_t>({
      {4, rc::gen::inRange<std::uint32_t>(0x20, 0x7f)},
      {3, rc::gen::inRange<std::uint32_t>(0, 0x20)},
      {2, rc::gen::element<std::uint32_t>('"', '\\', '/', 0x7f, 0x80, 0xff, 0x2028, 0xfeff, 0xfffd,
                                          0xffff, 0xd7ff, 0xe000, 0x10000, 0x10ffff)},
      {1, rc::gen::inRange<std::uint32_t>(0x80, 0xd800)},
      {1, rc::gen::inRange<std::uint32_t>(0xe000, 0x110000)},
  });
  return rc::gen::map(rc::gen::container<std::vector<std::uint32_t>>(code),
                      [](const std::vector<std::uint32_t>& codes) {
                        std::string text;
                        for (const std::uint32_t one : codes) text += utf8_of(one);
                        return text;
                      });
}

/// Whole numbers, the ends of their range often.
template <class T>
rc::Gen<T> any_integer() {
  using Limits = std::numeric_limits<T>;
  return rc::gen::weightedOneOf<T>(
      {{3, rc::gen::arbitrary<T>()},
       {1, rc::gen::element<T>(Limits::min(), Limits::max(), static_cast<T>(Limits::max() - 1))}});
}

/// Every finite double, by its bits.
inline rc::Gen<double> any_double() {
  const auto by_bits = rc::gen::map(rc::gen::arbitrary<std::uint64_t>(), [](std::uint64_t bits) {
    const auto value = std::bit_cast<double>(bits);
    return std::isfinite(value) ? value : 0.0;
  });
  using Limits = std::numeric_limits<double>;
  return rc::gen::weightedOneOf<double>(
      {{3, by_bits},
       {1, rc::gen::arbitrary<double>()},
       {1, rc::gen::element(-0.0, Limits::min(), Limits::denorm_min(), Limits::max(),
                            Limits::lowest(), 0.1, 9007199254740993.0)}});
}
inline rc::Gen<float> any_float() {
  return rc::gen::map(rc::gen::arbitrary<std::uint32_t>(), [](std::uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    return std::isfinite(value) ? value : 0.0F;
  });
}

template <class T>
rc::Gen<std::optional<T>> any_optional(rc::Gen<T> value) {
  return rc::gen::oneOf(
      rc::gen::just(std::optional<T>{}),
      rc::gen::map(std::move(value), [](T one) { return std::optional<T>{one}; }));
}

inline rc::Gen<RichLine> any_line() {
  return rc::gen::build<RichLine>(rc::gen::set(&RichLine::sku, any_text()),
                                  rc::gen::set(&RichLine::quantity, any_integer<std::int32_t>()),
                                  rc::gen::set(&RichLine::discount, any_optional(any_double())));
}

inline rc::Gen<RichTree> any_tree(int depth) {
  if (depth == 0) {
    return rc::gen::map(any_text(), [](std::string label) { return RichTree{label, {}}; });
  }
  return rc::gen::build<RichTree>(
      rc::gen::set(&RichTree::label, any_text()),
      rc::gen::set(&RichTree::children,
                   rc::gen::resize(3, rc::gen::container<std::vector<RichTree>>(
                                          rc::gen::lazy([=] { return any_tree(depth - 1); })))));
}

inline rc::Gen<Id<RichBasket>> any_id() {
  return rc::gen::map(rc::gen::nonEmpty(rc::gen::string<std::string>()), [](std::string key) {
    for (char& c : key) c = c <= ' ' || c == 0x7f ? 'x' : c;
    return Id<RichBasket>::from(key.substr(0, 190));
  });
}

inline rc::Gen<Uuid> any_uuid() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::uint8_t>>(16, rc::gen::arbitrary<std::uint8_t>()),
      [](const std::vector<std::uint8_t>& bytes) {
        Uuid::Bytes all{};
        std::copy(bytes.begin(), bytes.end(), all.begin());
        return Uuid{all};
      });
}

/// A point of the years 0000 to 9999.
inline rc::Gen<Timestamp> any_time() {
  constexpr std::int64_t first = -62'167'219'200'000'000;
  constexpr std::int64_t last = 253'402'300'799'999'999;
  return rc::gen::map(
      rc::gen::weightedOneOf<std::int64_t>(
          {{5, rc::gen::inRange<std::int64_t>(first, last)},
           {1, rc::gen::elementOf(std::vector<std::int64_t>{first, last, 0, -1})}}),
      [](std::int64_t micros) { return Timestamp{std::chrono::microseconds{micros}}; });
}

inline rc::Gen<RichNumbers> any_numbers() {
  return rc::gen::build<RichNumbers>(
      rc::gen::set(&RichNumbers::flag),
      rc::gen::set(&RichNumbers::tiny, any_integer<std::int8_t>()),
      rc::gen::set(&RichNumbers::small, any_integer<std::uint16_t>()),
      rc::gen::set(&RichNumbers::wide, any_integer<std::int64_t>()),
      rc::gen::set(&RichNumbers::natural, any_integer<std::uint64_t>()),
      rc::gen::set(&RichNumbers::real, any_double()),
      rc::gen::set(&RichNumbers::rough, any_float()),
      rc::gen::set(&RichNumbers::triple,
                   rc::gen::container<std::array<std::uint16_t, 3>>(any_integer<std::uint16_t>())),
      rc::gen::set(&RichNumbers::bits,
                   rc::gen::map(rc::gen::inRange<unsigned long>(0, 4096),
                                [](unsigned long bits) { return std::bitset<12>{bits}; })));
}

inline rc::Gen<RichContainers> any_containers() {
  using rc::gen::container;
  return rc::gen::build<RichContainers>(
      rc::gen::set(&RichContainers::lines, container<std::vector<RichLine>>(any_line())),
      rc::gen::set(&RichContainers::marks),
      rc::gen::set(&RichContainers::by_name, container<std::map<std::string, std::int64_t>>(
                                                 any_text(), any_integer<std::int64_t>())),
      rc::gen::set(&RichContainers::by_number, container<std::map<std::int32_t, std::string>>(
                                                   any_integer<std::int32_t>(), any_text())),
      rc::gen::set(&RichContainers::by_id,
                   container<std::map<Id<RichBasket>, RichLine>>(any_id(), any_line())),
      rc::gen::set(&RichContainers::many,
                   container<std::multimap<std::string, int>>(
                       rc::gen::element<std::string>("a", "b"), rc::gen::arbitrary<int>())),
      rc::gen::set(&RichContainers::blobs,
                   container<std::unordered_map<std::string, std::vector<std::uint8_t>>>(
                       any_text(), rc::gen::arbitrary<std::vector<std::uint8_t>>())),
      rc::gen::set(&RichContainers::readings, container<std::unordered_map<std::int32_t, double>>(
                                                  any_integer<std::int32_t>(), any_double())),
      rc::gen::set(&RichContainers::tags, container<std::unordered_set<std::string>>(any_text())));
}

inline rc::Gen<RichEvent::Either> any_either() {
  using Either = RichEvent::Either;
  return rc::gen::oneOf(
      rc::gen::just(Either{}),
      rc::gen::map(any_integer<std::int64_t>(), [](std::int64_t n) { return Either{n}; }),
      rc::gen::map(any_text(), [](std::string text) { return Either{std::move(text)}; }),
      rc::gen::map(any_line(), [](RichLine line) { return Either{std::move(line)}; }));
}

inline rc::Gen<RichEvent> any_rich_event() {
  using rc::gen::set;
  return rc::gen::build<RichEvent>(
      set(&RichEvent::numbers, any_numbers()), set(&RichEvent::text, any_text()),
      set(&RichEvent::note, any_optional(any_text())),
      set(&RichEvent::containers, any_containers()), set(&RichEvent::either, any_either()),
      set(&RichEvent::pair, rc::gen::pair(any_integer<int>(), any_text())),
      set(&RichEvent::tuple,
          rc::gen::tuple(any_integer<int>(), any_text(), rc::gen::arbitrary<bool>())),
      set(&RichEvent::tree, any_tree(3)), set(&RichEvent::at, any_time()),
      set(&RichEvent::precisely, rc::gen::map(any_integer<std::int64_t>(),
                                              [](std::int64_t nanos) {
                                                return std::chrono::system_clock::time_point{
                                                    std::chrono::nanoseconds{nanos}};
                                              })),
      set(&RichEvent::took,
          rc::gen::map(any_integer<std::int64_t>(),
                       [](std::int64_t count) { return std::chrono::milliseconds{count}; })),
      set(&RichEvent::grade, rc::gen::element(Grade::low, Grade::none, Grade::high)),
      set(&RichEvent::channel, rc::gen::element(Channel::web, Channel::shop)),
      set(&RichEvent::basket, any_id()), set(&RichEvent::request, any_uuid()));
}

}  // namespace stela::test
