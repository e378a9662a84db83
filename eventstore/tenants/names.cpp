#include "tenants/names.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

namespace stela::tenants {
namespace {

constexpr std::string_view mark = "{tenant}";
constexpr std::size_t longest_name = 39;

/// Words with a meaning in subjects, commands and metrics, and names of devices.
constexpr std::array<std::string_view, 14> reserved{
    "all", "other", "default", "tenant", "tenants", "registry", "con",
    "prn", "aux",   "nul",     "com1",   "com2",    "lpt1",     "lpt2"};

constexpr bool is_letter_or_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// "p00", or "acme_p00": the streams and subjects of partitions end like this.
bool ends_like_a_partition(std::string_view name) noexcept {
  const std::size_t size = name.size();
  const auto is_digit = [&](std::size_t i) { return name[i] >= '0' && name[i] <= '9'; };
  return size >= 3 && name[size - 3] == 'p' && is_digit(size - 2) && is_digit(size - 1) &&
         (size == 3 || name[size - 4] == '_');
}

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw UsageError{"'" + std::string{name.substr(0, 80)} + "' can't be a tenant's name: " + why};
}

}  // namespace

void check_name(std::string_view name) {
  const bool is_well_formed =
      !name.empty() && name.size() <= longest_name && is_letter_or_digit(name[0]) &&
      std::all_of(name.begin(), name.end(),
                  [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; });
  if (!is_well_formed) {
    refuse(name,
           "it is 1 to 39 of a to z, digits, '_' and '-', and begins with a letter or a digit");
  }
  if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) {
    refuse(name, "it is a reserved word");
  }
  if (ends_like_a_partition(name)) refuse(name, "streams of partitions end like it");
  if (name.ends_with("_app")) refuse(name, "schemas for a tenant's own SQL end like it");
}

Pattern::Pattern(std::string text, std::string folder)
    : text_{std::move(text)}, is_on_server_{stela::is_on_server(text_)} {
  const std::size_t at = text_.find(mark);
  if (is_on_server_) {
    if (at == std::string::npos) return;
    throw UsageError{
        "the URL of a server has no {tenant}: each tenant has a schema of one database"};
  }
  if (at == std::string::npos || text_.find(mark, at + 1) != std::string::npos) {
    throw UsageError{"'" + text_ + "' must have {tenant} once, as in data/{tenant}.db"};
  }
  before_ = text_.substr(0, at);
  after_ = text_.substr(at + mark.size());
  if (!text_.starts_with('/')) before_ = std::filesystem::path{folder} / before_;
  if (text_.ends_with('/')) {
    throw UsageError{"'" + text_ + "' names folders; each store is a file: data/{tenant}.db"};
  }
  // Or else a file beside a store, such as "acme-lock", would be another tenant's store.
  if (after_.find_first_of("./") == std::string::npos) {
    throw UsageError{"'" + text_ + "' ends with the name; end it with a dot: data/{tenant}.db"};
  }
}

std::string Pattern::place_of(std::string_view tenant) const {
  return is_on_server_ ? text_ : before_ + std::string{tenant} + after_;
}

std::string Pattern::parent() const {
  return std::filesystem::path{before_ + "x"}.parent_path();
}

std::string Pattern::name_in(std::string_view path) const {
  const std::size_t around = before_.size() + after_.size();
  if (path.size() <= around || !path.starts_with(before_) || !path.ends_with(after_)) return {};
  return std::string{path.substr(before_.size(), path.size() - around)};
}

}  // namespace stela::tenants
