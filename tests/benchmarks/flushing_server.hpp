// A PostgreSQL server on a disk of an exact speed.
#pragma once

#include "support/postgres_server.hpp"

#include <chrono>
#include <string>

namespace stela::bench {

/// Its files are in memory, and a library that is loaded into it alone sleeps where a flush of the
/// log would wait for a disk (slow_flush.cpp). `commit_delay` would be no such disk: it waits
/// before a flush, only while other transactions are open, and so that they join it.
class FlushingServer {
 public:
  /// Throws if its flushes don't take that long.
  explicit FlushingServer(std::chrono::microseconds flush);

  const test::PostgresServer& server() const noexcept { return server_; }
  std::string url() const { return server_.url(); }
  /// For the names of figures: "100us", "5ms".
  const std::string& name() const noexcept { return name_; }
  /// What a flush took, on average.
  std::chrono::microseconds taken() const noexcept { return taken_; }

 private:
  const std::string name_;
  const test::PostgresServer server_;
  std::chrono::microseconds taken_{0};
};

}  // namespace stela::bench
