// Whose fault it is that a handler failed: the one place that says so.
#pragma once

#include "database/failure_watch.hpp"
#include "database/storable_text.hpp"
#include "database/transaction.hpp"

#include <stela/framework/error.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
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

/// Of what a handler threw: called in a `catch (...)`. Its text can be stored, and is bounded.
inline Fault current_fault() {
  const auto blaming = [](const std::exception& error, Blame blame) {
    constexpr std::size_t max_size = 2000;
    std::string what{error.what()};
    if (what.size() > max_size) {
      std::size_t end = max_size;
      while (end > 0 && (static_cast<unsigned char>(what[end]) & 0xC0) == 0x80) --end;
      what.resize(end);
    }
    if (what.empty()) what = "an exception without a text";
    return Fault{database::made_storable(what), blame};
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {"there isn't enough memory for it", Blame::nobody};
  } catch (const UnknownEvent& e) {
    return blaming(e, Blame::newer);
  } catch (const CorruptEvent& e) {
    return blaming(e, Blame::unreadable);
  } catch (const database::CommittedByCaller& e) {
    return blaming(e, Blame::committed);
  } catch (const std::exception& e) {
    return blaming(e, Blame::handler);
  } catch (...) {
    return {"something was thrown that isn't a std::exception"};
  }
}

/// The same of a handler that worked on a store's connection. What the store itself failed with,
/// or asks of every program that appends, is no handler's fault: that is thrown.
inline Fault current_fault(const database::FailureWatch& watch) {
  const Fault fault = current_fault();
  if (fault.blame == Blame::nobody) return fault;
  watch.rethrow_failure();
  try {
    throw;
  } catch (const ParticipantMissing&) {
    throw;
  } catch (...) {
    return fault;
  }
}

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
