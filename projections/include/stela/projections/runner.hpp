// Drives projectors through the events of a store.
#pragma once

#include <stela/eventstore/sqlite.hpp>
#include <stela/projections/projector.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace stela {

/// Catches projectors up with the store. Their rows and their checkpoint commit together.
/// Threads: one at a time, and one runner a database.
class STELA_PROJECTIONS_EXPORT Runner {
 public:
  /// `store` must outlive the runner.
  explicit Runner(sqlite::Store& store);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Makes the projector's tables if they aren't there. UsageError if the database has them in
  /// another version.
  template <class P>
  void add(P projector) {
    add_any(std::make_unique<detail::TypedProjector<P>>(std::move(projector)));
  }

  /// Projects everything that is committed now.
  void catch_up();

 private:
  void add_any(std::unique_ptr<AnyProjector> projector);
  bool project_batch(AnyProjector& projector);

  sqlite::Store& store_;
  std::vector<std::unique_ptr<AnyProjector>> projectors_;
};

}  // namespace stela
