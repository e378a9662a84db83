// Decides who is to blame for a handler's failure, for every follower.
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
  /// The handler, or its input: the attempt counts.
  handler,
  /// Its input, or data that it read, can't be decoded.
  unreadable,
  /// It needs an event of a version that only another release knows.
  newer,
  /// It committed its own changes and those of the handlers before it: another attempt would repeat
  /// them.
  committed,
  /// Memory was short, as could happen with any other event.
  nobody,
};

struct Fault {
  std::string what = {};
  Blame blame = Blame::handler;
};

/// Thrown to roll back a transaction whose outcome is known.
struct RollBack {};

/// The fault for a handler's exception; call it in a `catch (...)`. Its text is storable and
/// bounded.
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

/// The same for a handler that used a store's connection. Failures of the store itself, or demands
/// that it makes of every appending program, aren't the handler's fault: they are thrown.
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

/// Whether the attempt counts against the event's limit. Timers have a rule of their
/// own: Feed::fire_one.
constexpr bool is_counted(Blame blame) noexcept {
  return blame != Blame::newer && blame != Blame::nobody;
}

/// Whether no attempt is left after this many counted ones.
constexpr bool is_final(Blame blame, int attempts, int max_attempts) noexcept {
  if (blame == Blame::nobody) return false;
  return blame == Blame::newer || blame == Blame::committed || attempts >= max_attempts;
}

}  // namespace stela::follow
