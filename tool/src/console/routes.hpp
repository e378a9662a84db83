// The console's table of routes.
#pragma once

#include <span>
#include <string_view>

namespace stela::tool {

/// A command that the console offers: it only reads, and ends by itself.
struct Route {
  std::string_view command;
  /// It prints an object a line, not one report.
  bool is_list = true;
  /// It tries whether the database's lock can be had, and writes nothing.
  bool tries_lock = false;
};

/// Every command that can be asked for.
std::span<const Route> all_routes();

/// A command that an operator may have done.
struct Action {
  std::string_view command;
  /// It asks by itself, once it knows what it would do.
  bool asks = false;
  /// It has --dry-run.
  bool has_preview = false;
};

std::span<const Action> all_actions();

}  // namespace stela::tool
