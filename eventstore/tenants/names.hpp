// What tenants may be called, and where their stores are.
#pragma once

#include <string>
#include <string_view>

namespace stela::tenants {

/// UsageError, which names the rule, if no tenant can have this name.
void check_name(std::string_view name);

/// Places of tenants' stores or key stores: a path with "{tenant}", or the URL of a server.
class Pattern {
 public:
  /// UsageError if `text` can't be one. `folder` is where relative paths begin.
  Pattern(std::string text, std::string folder);

  const std::string& text() const noexcept { return text_; }
  bool is_on_server() const noexcept { return is_on_server_; }
  std::string place_of(std::string_view tenant) const;
  /// The name of the tenant whose file this path is; empty if it is none.
  std::string name_in(std::string_view path) const;
  /// The folder with all tenants' files, or with a folder for each.
  std::string parent() const;

 private:
  std::string text_;
  /// The absolute path before and after the name.
  std::string before_;
  std::string after_;
  bool is_on_server_;
};

}  // namespace stela::tenants
