// The engines' side of SQL: binds the parameters of named statements, and reads their rows.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/uuid.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stela::database {

/// A prepared statement of one engine. Parameters count from 1, columns from 0. Bound text and
/// blobs must outlive the run; those that are read are valid until the next step.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Statement {
 public:
  virtual ~Statement() = default;

  virtual void bind(int parameter, std::int64_t value) = 0;
  virtual void bind(int parameter, std::string_view text) = 0;
  virtual void bind(int parameter, std::nullptr_t) = 0;
  virtual void bind_blob(int parameter, std::string_view bytes) = 0;

  /// True if there is a row.
  virtual bool step() = 0;
  /// Ends the run.
  virtual void reset() noexcept = 0;
  /// How many rows the run changed, if it changes rows.
  virtual std::int64_t changes() const noexcept = 0;

  virtual std::int64_t integer(int column) const noexcept = 0;
  /// Empty for NULL. std::bad_alloc if there is no memory for the value.
  virtual std::string_view text(int column) const = 0;
  virtual std::string_view blob(int column) const = 0;
  virtual bool is_null(int column) const noexcept = 0;
};

/// One run of a prepared statement, of any engine or of one; its destructor ends it.
template <class Prepared>
class Run {
 public:
  explicit Run(Prepared& prepared) noexcept : statement_{prepared} {}
  /// A run of `statement`, a named one of the .sql files, with its parameters bound.
  template <class Named>
  Run(Prepared& prepared, const Named& statement) : Run{prepared} {
    statement.bind(*this);
  }
  ~Run() { statement_.reset(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Run& bind(int parameter, std::int64_t value) {
    statement_.bind(parameter, value);
    return *this;
  }
  Run& bind(int parameter, std::string_view text) {
    statement_.bind(parameter, text);
    return *this;
  }
  Run& bind(int parameter, std::nullptr_t null) {
    statement_.bind(parameter, null);
    return *this;
  }
  Run& bind_blob(int parameter, std::string_view bytes) {
    statement_.bind_blob(parameter, bytes);
    return *this;
  }
  Run& bind_bool(int parameter, bool value) { return bind(parameter, std::int64_t{value}); }
  Run& bind_time(int parameter, Timestamp time) {
    return bind(parameter, std::int64_t{time.time_since_epoch().count()});
  }

  bool step() { return statement_.step(); }
  /// Runs to the end.
  void run() {
    while (step()) {
    }
  }
  std::int64_t changes() const noexcept { return statement_.changes(); }
  Prepared& statement() noexcept { return statement_; }

  std::int64_t integer(int column) const noexcept { return statement_.integer(column); }
  bool boolean(int column) const noexcept { return integer(column) != 0; }
  Timestamp time(int column) const noexcept {
    return Timestamp{std::chrono::microseconds{integer(column)}};
  }
  std::string_view text(int column) const { return statement_.text(column); }
  std::string_view blob(int column) const { return statement_.blob(column); }
  bool is_null(int column) const noexcept { return statement_.is_null(column); }

 private:
  Prepared& statement_;
};

using Query = Run<Statement>;

/// The value of a parameter that is NULL where there is no text, or no id.
inline std::optional<std::string_view> or_null(std::string_view text) noexcept {
  return text.empty() ? std::nullopt : std::optional{text};
}
inline std::optional<Uuid> or_null(const Uuid& id) noexcept {
  return id.is_nil() ? std::nullopt : std::optional{id};
}

}  // namespace stela::database
