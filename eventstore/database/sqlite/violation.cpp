#include "database/sqlite/violation.hpp"

namespace stela::sqlite {
namespace {

std::string_view without(std::string_view text, std::string_view prefix) noexcept {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

/// Parses "<prefix>table.column, <prefix>table.column".
void read_columns(std::string_view text, std::string_view prefix, Constraint& constraint) {
  const std::string separator = ", " + std::string{prefix};
  while (text.starts_with(prefix)) {
    text.remove_prefix(prefix.size());
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos) return;
    const std::size_t end = text.find(separator, dot);
    constraint.table = text.substr(0, dot);
    constraint.columns.emplace_back(text.substr(dot + 1, end - dot - 1));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 2);
  }
}

}  // namespace

Constraint parse_violation(std::string_view message, std::string_view prefix) {
  Constraint constraint{.projector = std::string{prefix.substr(0, prefix.find('@'))}};
  constexpr std::string_view failed = " constraint failed: ";
  constexpr std::string_view column = " column ";
  const std::size_t at = message.find(failed);
  if (at == std::string_view::npos) {
    // "cannot store TEXT value in INTEGER column emails@1.emails.age", or a trigger's message.
    const std::size_t typed = message.find(column);
    if (message.starts_with("cannot store ") && typed != std::string_view::npos) {
      read_columns(message.substr(typed + column.size()), prefix, constraint);
    }
    if (constraint.columns.empty()) constraint.name = message;
    return constraint;
  }
  std::string_view subject = message.substr(at + failed.size());
  read_columns(subject, prefix, constraint);
  if (!constraint.columns.empty()) return constraint;
  if (message.starts_with("UNIQUE") && subject.starts_with("index '")) {
    subject = without(subject.substr(7, subject.size() - 8), prefix);
  }
  constraint.name = subject;
  return constraint;
}

}  // namespace stela::sqlite
