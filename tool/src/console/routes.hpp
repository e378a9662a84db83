// The console's table of routes.
#pragma once

#include "console/people.hpp"

#include <span>
#include <string_view>

namespace stela::tool {

/// A command that the console offers: it only reads, and ends by itself.
struct Route {
  std::string_view command;
  Grant grant;
  /// It prints an object a line, not one report.
  bool is_list = true;
  /// It tries whether the database's lock can be had, and writes nothing.
  bool tries_lock = false;
  /// "state" is an aggregate's.
  bool has_states = false;
};

/// Every command that can be asked for.
std::span<const Route> all_routes();

/// A command that an operator may have done.
struct Action {
  std::string_view command;
  Grant grant;
  /// It asks by itself, once it knows what it would do.
  bool asks = false;
  /// It has --dry-run.
  bool has_preview = false;
  /// What it finds is said with tags and texts of events.
  bool quotes_payloads = false;
};

std::span<const Action> all_actions();

/// Whoever may not see payloads may not try what is in them, either.
bool searches_payloads(std::string_view option);
/// An option whose text may have something of a payload: that of a search, or what an operator
/// says.
bool has_private_text(std::string_view option);

}  // namespace stela::tool
