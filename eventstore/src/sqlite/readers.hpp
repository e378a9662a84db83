// The connections for reading, beside the writing one.
#pragma once

#include "database/sqlite/connection.hpp"
#include "sqlite/place.hpp"
#include "sqlite/reading.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace stela::sqlite {

/// Reading connections, opened on demand and kept.
/// Threads: any number at once.
class Readers final : public Reading {
 public:
  static constexpr std::size_t max_idle = 16;

  Readers(std::string path, ConnectionOptions options, const Place& place)
      : path_{std::move(path)}, options_{std::move(options)}, place_{place} {}

  /// StoreFailed, within a few milliseconds, if the file is no longer at its path.
  void read(FunctionRef<void(Connection&)> work) override;

 private:
  std::unique_ptr<Connection> take();

  const database::OwningProcess owner_;
  std::string path_;
  ConnectionOptions options_;
  const Place& place_;
  std::mutex mutex_;
  /// Guarded by mutex_.
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace stela::sqlite
