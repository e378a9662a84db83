// Parameters of a statement, in PostgreSQL's binary format.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/uuid.hpp>

#include <libpq-fe.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::postgres {

/// PostgreSQL's type numbers, which never change.
namespace type {
inline constexpr Oid unknown = 0;
inline constexpr Oid boolean = 16;
inline constexpr Oid bytes = 17;
inline constexpr Oid int8 = 20;
inline constexpr Oid int2 = 21;
inline constexpr Oid int4 = 23;
inline constexpr Oid text = 25;
inline constexpr Oid oid = 26;
inline constexpr Oid float4 = 700;
inline constexpr Oid float8 = 701;
inline constexpr Oid numeric = 1700;
inline constexpr Oid uuid = 2950;
}  // namespace type

/// UsageError if there are more bytes than the server accepts in one value.
STELA_EVENTSTORE_EXPORT void check_size(std::size_t bytes);

/// An array parameter, filled element by element.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Array {
 public:
  static Array of_int8() { return Array{1016, type::int8}; }
  static Array of_int4() { return Array{1007, type::int4}; }
  static Array of_bool() { return Array{1000, type::boolean}; }
  static Array of_text() { return Array{1009, type::text}; }
  static Array of_bytes() { return Array{1001, type::bytes}; }
  static Array of_uuid() { return Array{2951, type::uuid}; }

  void add(std::int64_t value);
  void add_int4(std::int64_t value);
  void add_bool(bool value);
  void add_time(Timestamp time) { add(std::int64_t{time.time_since_epoch().count()}); }
  void add_bytes(std::string_view bytes);
  void add_uuid(const Uuid& id);
  void add_null();

  Oid type() const noexcept { return type_; }
  bool is_empty() const noexcept { return count_ == 0; }
  /// The array, with its header.
  std::string_view encoded();

 private:
  Array(Oid type, Oid element);

  Oid type_;
  std::int32_t count_ = 0;
  bool has_null_ = false;
  std::string bytes_;
};

/// Texts, bytes and arrays are views, and must outlive the run.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Parameters {
 public:
  Parameters& add(std::int64_t value);
  Parameters& add(std::string_view text) { return add(type::text, text, true); }
  Parameters& add_bool(bool value) { return add(std::int64_t{value}); }
  Parameters& add_time(Timestamp time) {
    return add(std::int64_t{time.time_since_epoch().count()});
  }
  Parameters& add_bytes(std::string_view bytes) { return add(type::bytes, bytes, true); }
  Parameters& add_uuid(const Uuid& id);
  Parameters& add_null(Oid of = type::unknown);
  Parameters& add(Array& array) { return add(array.type(), array.encoded(), true); }
  /// Copies a text whose type PostgreSQL infers. UsageError if it contains a zero byte.
  Parameters& add_untyped(std::string_view text);
  Parameters& add_real(double value);
  Parameters& add(Oid of, std::string_view bytes, bool is_binary);

  int count() const noexcept { return static_cast<int>(types_.size()); }
  const std::vector<Oid>& types() const noexcept { return types_; }
  std::span<const char* const> values();
  const int* lengths() const noexcept { return lengths_.data(); }
  const int* formats() const noexcept { return formats_.data(); }

 private:
  static constexpr std::size_t is_referred = ~std::size_t{0};

  Parameters& keep(Oid of, std::string_view bytes);

  std::vector<Oid> types_;
  std::vector<const char*> values_;
  /// The value's offset in `own_`, or a mark for a value elsewhere.
  std::vector<std::size_t> offsets_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  std::string own_;
};

/// Numbers in wire format.
STELA_EVENTSTORE_EXPORT std::int64_t to_integer(std::string_view bytes) noexcept;
/// Nil if the bytes aren't a UUID.
STELA_EVENTSTORE_EXPORT Uuid to_uuid(std::string_view bytes) noexcept;

}  // namespace stela::postgres
