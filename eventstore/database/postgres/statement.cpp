#include "database/postgres/statement.hpp"

#include "database/postgres/sql_text.hpp"
#include "database/storable_text.hpp"

#include <algorithm>
#include <charconv>

namespace stela::postgres {

std::int64_t Result::changes() const noexcept {
  const std::string_view count = PQcmdTuples(get());
  std::int64_t changed = 0;
  std::from_chars(count.data(), count.data() + count.size(), changed);
  return changed;
}

std::vector<std::int64_t> NamedRows::integers(int column) const {
  constexpr std::size_t header = 20;
  std::vector<std::int64_t> all;
  std::string_view bytes = result_.bytes(row_, column);
  if (is_null(column) || bytes.size() < header) return all;
  bytes.remove_prefix(header);
  while (bytes.size() >= 4) {
    const std::int64_t size = to_integer(bytes.substr(0, 4));
    bytes.remove_prefix(4);
    const auto length = static_cast<std::size_t>(size < 0 ? 0 : size);
    all.push_back(length > 0 ? to_integer(bytes.substr(0, length)) : 0);
    bytes.remove_prefix(std::min(length, bytes.size()));
  }
  return all;
}

Statement::Statement(Connection& connection, std::string_view sql)
    : connection_{connection}, sql_{in_schema(with_dollars(sql), connection.options().schema)} {}

Statement::Value& Statement::at(int parameter) {
  const auto count = static_cast<std::size_t>(parameter);
  if (values_.size() < count) values_.resize(count);
  return values_[count - 1];
}

void Statement::bind(int parameter, std::int64_t value) {
  at(parameter) = {type::int8, value, {}, false};
}

void Statement::bind(int parameter, std::string_view text) {
  // The server accepts no other text.
  if (!database::is_storable(text)) {
    text = made_.emplace_front(database::made_storable(text));
  }
  at(parameter) = {type::text, 0, text, false};
}

void Statement::bind(int parameter, std::nullptr_t) {
  at(parameter) = {};
}

void Statement::bind_blob(int parameter, std::string_view bytes) {
  at(parameter) = {type::bytes, 0, bytes, false};
}

bool Statement::step() {
  if (!has_run_) run();
  if (row_ + 1 >= result_.rows()) return false;
  ++row_;
  return true;
}

void Statement::reset() noexcept {
  result_ = {};
  row_ = -1;
  has_run_ = false;
  values_.clear();
  made_.clear();
}

void Statement::run() {
  Parameters parameters;
  bool fits = !name_.empty() && types_.size() == values_.size();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (value.is_null) {
      // NULL has the type that the statement was prepared for.
      parameters.add_null();
    } else if (value.type == type::int8) {
      parameters.add(value.integer);
    } else {
      parameters.add(value.type, value.bytes, true);
    }
    fits = fits && (value.is_null || types_[i] == value.type);
  }
  if (!connection_.may_prepare()) {
    result_ = connection_.query(sql_, std::move(parameters));
  } else {
    if (!fits) {
      name_ = "stela_" + std::to_string(++connection_.names_);
      types_ = parameters.types();
      connection_.prepare(name_, sql_, types_);
    }
    connection_.begin();
    connection_.send_prepared(name_, parameters);
    result_ = connection_.finish("a statement");
  }
  has_run_ = true;
}

}  // namespace stela::postgres
