// The tables of a projector, as it writes them.
#pragma once

#include <stela/projections/export.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace stela {

/// SQL on the tables of one projector, inside the transaction that moves its checkpoint. A table is
/// written {name}, so that another version of it can stand beside.
/// Threads: the one that projects.
class STELA_PROJECTIONS_EXPORT ReadModel {
 public:
  using Value = std::variant<std::nullptr_t, std::int64_t, double, std::string_view>;

  virtual ~ReadModel() = default;

  /// Runs one statement with its parameters bound in order.
  template <class... Args>
  void execute(std::string_view sql, const Args&... args) {
    run(sql, {to_value(args)...});
  }

 protected:
  virtual void run(std::string_view sql, std::initializer_list<Value> values) = 0;

 private:
  static Value to_value(std::nullptr_t) { return nullptr; }
  static Value to_value(std::integral auto value) { return static_cast<std::int64_t>(value); }
  static Value to_value(std::floating_point auto value) { return static_cast<double>(value); }
  static Value to_value(std::string_view value) { return value; }
};

}  // namespace stela
