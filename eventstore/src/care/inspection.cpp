#include "care/inspection.hpp"

#include "links.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <utility>

namespace stela::care {

void Inspection::run(std::string_view name, FunctionRef<void()> check) {
  check_ = name;
  problems_of_check_ = 0;
  try {
    check();
  } catch (const EndOfCheck&) {
    result_.finished = false;
  }
  hand_out();
}

void Inspection::run(IntegrityCheck& check) {
  run(check.name(), [&] { check.run(*this); });
}

void Inspection::run_common_checks() {
  links::Check links;
  run(links);
  for (IntegrityCheck* const check : options_.checks) run(*check);
}

void Inspection::hand_out() {
  for (const Problem& problem : std::exchange(found_, {})) report_(problem);
}

std::optional<std::string> Inspection::try_read(database::Database::Work work) {
  if (options_.stop.stop_requested()) throw EndOfCheck{};
  check_place();
  try {
    attempt(work);
  } catch (const Error& e) {
    // A lack of space or time isn't a problem of the store.
    if (e.is_retryable() || e.code() == ErrorCode::store_full) throw;
    return e.what();
  }
  hand_out();
  return std::nullopt;
}

bool Inspection::read(database::Database::Work work) {
  auto error = try_read(work);
  if (error) report(std::string{engine_.whole}, std::move(*error));
  return !error;
}

void Inspection::report(std::string where, std::string what, std::string advice) {
  found_.push_back({check_, std::move(where), std::move(what), std::move(advice)});
  ++result_.problems;
  if (++problems_of_check_ >= options_.max_problems) throw EndOfCheck{};
}

void Inspection::report(std::string where, std::string what) {
  report(std::move(where), std::move(what), advice_on_damage());
}

void Inspection::leave_unchecked(std::string name, std::string why) {
  std::vector<UncheckedTable>& all = result_.unchecked;
  const auto is_same = [&](const UncheckedTable& other) { return other.table == name; };
  if (std::any_of(all.begin(), all.end(), is_same)) return;
  all.push_back({std::move(name), std::move(why)});
}

void Inspection::progress(std::int64_t done, std::int64_t total) {
  if (options_.progress) options_.progress({check_, done, total});
}

}  // namespace stela::care
