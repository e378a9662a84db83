// Whose fault it is that a handler failed: the one place that says so.
#pragma once

#include "database/failure_watch.hpp"

#include <stela/eventstore/export.hpp>

#include <cstdint>
#include <exception>
#include <string>

namespace stela::follow {

enum class Blame : std::uint8_t {
  /// The handler's, or that of what it was given: the attempt counts.
  handler,
  /// Bytes that it was given, or read, can't be decoded.
  unreadable,
  /// Another release knows the version of an event that it needs.
  newer,
  /// It committed what it and the handlers before it did: another attempt would do that twice.
  committed,
  /// Memory was short, as it might have been for any other event.
  nobody,
};

struct Fault {
  std::string what = {};
  Blame blame = Blame::handler;
};

/// Thrown to roll back a transaction whose outcome is known.
struct RollBack {};

/// Of what a handler threw.
STELA_EVENTSTORE_EXPORT Blame blame_for(const std::exception_ptr& error);
/// In words, of a bounded length.
STELA_EVENTSTORE_EXPORT std::string text_of(const std::exception_ptr& error);

/// The fault of what a handler threw: called in a `catch (...)`.
STELA_EVENTSTORE_EXPORT Fault current_fault();
/// The same of a handler that worked on a store's connection. What the store itself failed with is
/// nobody's fault but the store's: that is thrown, whatever the handler made of it.
STELA_EVENTSTORE_EXPORT Fault current_fault(const database::FailureWatch& watch);

/// Whether the attempt is one of those that an event has.
constexpr bool is_counted(Blame blame) noexcept {
  return blame != Blame::newer && blame != Blame::nobody;
}

/// Whether there is no other attempt after so many that were counted.
constexpr bool is_final(Blame blame, int attempts, int max_attempts) noexcept {
  if (blame == Blame::nobody) return false;
  return blame == Blame::newer || blame == Blame::committed || attempts >= max_attempts;
}

}  // namespace stela::follow
