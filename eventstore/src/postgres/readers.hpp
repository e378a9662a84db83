// Reading, and that what was read can't be lost.
#pragma once

#include "postgres/server_session.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <cstdint>

namespace stela::postgres {

/// Where a cursor gets a connection from, one page at a time.
class Reading {
 public:
  virtual ~Reading() = default;
  /// Runs `work`, maybe twice. The run of the server that it was in.
  virtual Uuid read(FunctionRef<void(Connection&)> work) = 0;
  /// True when what was read in `run` up to `sequence` can't be lost any more. False if it may be
  /// lost already, and must be read again.
  virtual bool vouch(const Uuid& run, std::int64_t sequence) = 0;
};

/// Reads by `work`, which says up to which sequence its answer reaches, until that is durable.
/// StoreBusy if the server is restarted again and again.
void read_durably(Reading& reading, FunctionRef<std::int64_t(Connection&)> work);

/// Of the last event; 0 if there is none.
std::int64_t last_sequence(Connection& connection);

}  // namespace stela::postgres
