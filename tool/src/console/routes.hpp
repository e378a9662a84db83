// The console's table of routes.
#pragma once

#include "console/people.hpp"

#include <span>
#include <string_view>

namespace stela::tool {

/// A command that the console offers. It only reads, and ends by itself.
struct Route {
  std::string_view command;
  Grant grant;
  /// Prints one object per line instead of a single report.
  bool is_list = true;
  /// Tries to get the database's lock, and writes nothing.
  bool tries_lock = false;
  /// "state" in its output is an aggregate's state.
  bool has_states = false;
};

/// The commands that can be requested.
std::span<const Route> all_routes();

/// A command that an operator may run.
struct Action {
  std::string_view command;
  Grant grant;
  /// Asks by itself once it knows what it would do.
  bool asks = false;
  /// Has --dry-run.
  bool has_preview = false;
  /// Its output quotes tags and texts of events.
  bool quotes_payloads = false;
};

std::span<const Action> all_actions();

/// True if the option searches payloads, which only users who may see them are allowed to do.
bool searches_payloads(std::string_view option);
/// True if the option's text may quote a payload: a search's text, or an operator's reason.
bool has_private_text(std::string_view option);

}  // namespace stela::tool
