// Parameters and results of the user's SQL statements.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/codec/detail/shapes.hpp>
#include <stela/framework/numbers.hpp>
#include <stela/framework/stream_id.hpp>
#include <stela/framework/uuid.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stela {

/// A parameter of a statement. Texts and bytes are views and must outlive the call.
using SqlValue = std::variant<std::nullptr_t, std::int64_t, double, std::string_view,
                              std::span<const std::byte>, std::string>;

/// A value in a result.
using SqlCell =
    std::variant<std::nullptr_t, std::int64_t, double, std::string, std::vector<std::byte>>;

namespace detail {

STELA_EVENTSTORE_EXPORT std::int64_t to_sql_integer(std::uint64_t value);
[[noreturn]] STELA_EVENTSTORE_EXPORT void refuse_cell(std::string_view column, const SqlCell& cell,
                                                      std::string_view wanted);
STELA_EVENTSTORE_EXPORT std::int64_t integer_of(std::string_view column, const SqlCell& cell);
STELA_EVENTSTORE_EXPORT double real_of(std::string_view column, const SqlCell& cell);
STELA_EVENTSTORE_EXPORT const std::string& text_of(std::string_view column, const SqlCell& cell);
STELA_EVENTSTORE_EXPORT const std::vector<std::byte>& bytes_of(std::string_view column,
                                                               const SqlCell& cell);
STELA_EVENTSTORE_EXPORT Uuid uuid_of(std::string_view column, const SqlCell& cell);

/// Sealed: see `sealed_text`.
template <class T, auto Whose>
SqlValue to_sql(const Personal<T, Whose>& value) {
  return sealed_text(value);
}
inline SqlValue to_sql(std::nullptr_t) {
  return nullptr;
}
inline SqlValue to_sql(std::unsigned_integral auto value) {
  return to_sql_integer(value);
}
inline SqlValue to_sql(std::signed_integral auto value) {
  return std::int64_t{value};
}
inline SqlValue to_sql(std::floating_point auto value) {
  return static_cast<double>(value);
}
inline SqlValue to_sql(std::string_view value) {
  return value;
}
inline SqlValue to_sql(const std::string& value) {
  return std::string_view{value};
}
inline SqlValue to_sql(const char* value) {
  return std::string_view{value};
}
inline SqlValue to_sql(std::span<const std::byte> value) {
  return value;
}
inline SqlValue to_sql(const std::vector<std::byte>& value) {
  return std::span{value};
}
/// Microseconds since 1970.
inline SqlValue to_sql(Timestamp value) {
  return std::int64_t{value.time_since_epoch().count()};
}
inline SqlValue to_sql(const Uuid& value) {
  return value.to_string();
}
inline SqlValue to_sql(const StreamId& value) {
  return std::string_view{value.name()};
}
template <class A>
SqlValue to_sql(const Id<A>& value) {
  return std::string_view{value.key()};
}
template <class Tag>
SqlValue to_sql(Number<Tag> value) {
  return value.value();
}
template <class E>
requires std::is_enum_v<E> SqlValue to_sql(E value) {
  return to_sql(static_cast<std::underlying_type_t<E>>(value));
}
template <class T>
SqlValue to_sql(const std::optional<T>& value) {
  return value ? to_sql(*value) : SqlValue{nullptr};
}

template <class T>
struct FromSql {
  static_assert(!sizeof(T),
                "stela: a column is read as an integer, bool, enum, double, std::string, "
                "std::vector<std::byte>, stela::Timestamp, stela::Uuid or std::optional of one");
};
template <std::integral T>
struct FromSql<T> {
  static T from(std::string_view column, const SqlCell& cell) {
    const std::int64_t value = integer_of(column, cell);
    if constexpr (std::is_same_v<T, bool>) {
      return value != 0;
    } else {
      if (!std::in_range<T>(value)) refuse_cell(column, cell, "an integer of that size");
      return static_cast<T>(value);
    }
  }
};
template <class T>
requires std::is_enum_v<T>
struct FromSql<T> {
  static T from(std::string_view column, const SqlCell& cell) {
    return static_cast<T>(FromSql<std::underlying_type_t<T>>::from(column, cell));
  }
};
template <std::floating_point T>
struct FromSql<T> {
  static T from(std::string_view column, const SqlCell& cell) {
    return static_cast<T>(real_of(column, cell));
  }
};
template <>
struct FromSql<std::string> {
  static std::string from(std::string_view column, const SqlCell& cell) {
    return text_of(column, cell);
  }
};
template <>
struct FromSql<std::vector<std::byte>> {
  static std::vector<std::byte> from(std::string_view column, const SqlCell& cell) {
    return bytes_of(column, cell);
  }
};
template <>
struct FromSql<Timestamp> {
  static Timestamp from(std::string_view column, const SqlCell& cell) {
    return Timestamp{std::chrono::microseconds{integer_of(column, cell)}};
  }
};
template <>
struct FromSql<Uuid> {
  static Uuid from(std::string_view column, const SqlCell& cell) { return uuid_of(column, cell); }
};
template <class T>
struct FromSql<std::optional<T>> {
  static std::optional<T> from(std::string_view column, const SqlCell& cell) {
    if (std::holds_alternative<std::nullptr_t>(cell)) return std::nullopt;
    return FromSql<T>::from(column, cell);
  }
};

}  // namespace detail

class Rows;

/// One row of a result. Its columns are read by name. A view of its `Rows`.
class STELA_EVENTSTORE_EXPORT Row {
 public:
  Row(const Rows& rows, std::size_t number) noexcept : rows_{&rows}, number_{number} {}

  /// The value of a column. UsageError if the column is missing, if it is NULL and `T` isn't a
  /// std::optional, or if its value isn't a `T`.
  template <class T>
  T get(std::string_view column) const {
    return detail::FromSql<T>::from(column, cell(column));
  }

  /// The value as stored. UsageError if the column is missing.
  const SqlCell& cell(std::string_view column) const;

 private:
  const Rows* rows_;
  std::size_t number_;
};

/// The rows of a query, all in memory: `for (const Row row : rows)`. Threads: like a container.
class STELA_EVENTSTORE_EXPORT Rows {
 public:
  class Iterator {
   public:
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Rows& rows, std::size_t number) noexcept : rows_{&rows}, number_{number} {}
    Row operator*() const noexcept { return {*rows_, number_}; }
    Iterator& operator++() noexcept {
      ++number_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Rows* rows_ = nullptr;
    std::size_t number_ = 0;
  };

  explicit Rows(std::vector<std::string> columns = {}) : columns_{std::move(columns)} {}

  std::size_t size() const noexcept {
    return columns_.empty() ? 0 : cells_.size() / columns_.size();
  }
  bool empty() const noexcept { return cells_.empty(); }
  const std::vector<std::string>& columns() const noexcept { return columns_; }
  Row operator[](std::size_t number) const noexcept { return {*this, number}; }
  Iterator begin() const noexcept { return {*this, 0}; }
  Iterator end() const noexcept { return {*this, size()}; }

  const SqlCell& cell(std::size_t row, std::size_t column) const noexcept {
    return cells_[row * columns_.size() + column];
  }
  /// Adds the next cell. Cells come row by row.
  void add(SqlCell cell) { cells_.push_back(std::move(cell)); }

  /// The value of a single-value query: the first column of the first row. Empty if there is no
  /// row, or if the value is NULL.
  template <class T>
  std::optional<T> value() const {
    if (empty()) return std::nullopt;
    return detail::FromSql<std::optional<T>>::from(columns_[0], cells_[0]);
  }

 private:
  std::vector<std::string> columns_;
  std::vector<SqlCell> cells_;
};

}  // namespace stela
