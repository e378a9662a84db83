// Reading, and making sure that the results can't be lost.
#pragma once

#include "postgres/server_session.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <cstdint>

namespace stela::postgres {

/// Lends connections to cursors, one page at a time.
class Reading {
 public:
  virtual ~Reading() = default;
  /// Runs `work`, perhaps twice. Returns the server's run that it was in.
  virtual Uuid read(FunctionRef<void(Connection&)> work) = 0;
  /// True once results read in `run` up to `sequence` can no longer be lost. False if they may be
  /// lost already, and must be read again.
  virtual bool vouch(const Uuid& run, std::int64_t sequence) = 0;
};

/// Runs `work`, which returns the highest sequence in its answer, until that sequence is durable.
/// StoreBusy if the server keeps restarting.
void read_durably(Reading& reading, FunctionRef<std::int64_t(Connection&)> work);

/// The sequence of the last event; 0 if there is none.
std::int64_t last_sequence(Connection& connection);

}  // namespace stela::postgres
