// Walks a table by its key, page by page.
#pragma once

#include "database/inspection.hpp"

#include <cstdint>
#include <limits>
#include <utility>

namespace stela::care {

inline constexpr std::int64_t page_rows = 1024;
inline constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

enum class Walked : std::uint8_t {
  to_its_end,
  /// The unreadable part is reported.
  as_far_as_readable,
  /// A row's key doesn't ascend: the walk might never end.
  into_disorder,
};

/// `page` makes the statement for `page_rows` rows after a key, `key_of` returns a row's key, and
/// `look` sees each row after the one with the key `last`. Between pages, `turn` gets the number of
/// rows so far.
template <class Key, class Page, class KeyOf, class Look, class Turn>
Walked walk(database::Inspection& inspection, Key last, Page page, KeyOf key_of, Look look,
            Turn turn) {
  std::int64_t found = 0;
  Walked result = Walked::to_its_end;
  bool more = true;
  while (more) {
    more = false;
    const bool was_read = inspection.read([&](database::Connection& connection) {
      const Key from = last;
      auto row = connection.rows(page(from));
      std::int64_t rows = 0;
      while (row.step()) {
        Key key = key_of(row);
        if (key <= last) {
          result = Walked::into_disorder;
          return;
        }
        last = std::move(key);
        look(connection, row);
        ++rows;
      }
      found += rows;
      more = rows == page_rows;
    });
    if (!was_read) return Walked::as_far_as_readable;
    turn(found);
  }
  return result;
}

}  // namespace stela::care
