// What an engine implements, and a Store is a handle to.
#pragma once

#include "database/database.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/eventstore/verify.hpp>
#include <stela/framework/function_ref.hpp>

#include <cstdint>
#include <memory>

namespace stela {

class EventImport;

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Store::Core : public EventStore, public database::Database {
 public:
  using database::Database::attach;
  using database::Database::detach;
  using EventStore::attach;
  using EventStore::detach;

  virtual const Uuid& id() const noexcept = 0;
  Store& anchor() noexcept final { return anchor_; }

  virtual VerifyResult verify(FunctionRef<void(const Problem&)> report,
                              const VerifyOptions& options) = 0;
  virtual std::unique_ptr<EventImport> make_import() = 0;
  /// The last event that the tables or their indexes know of, or nearly, if they can't be read.
  virtual std::int64_t last_known_sequence() = 0;

 private:
  Store anchor_{*this};
};

}  // namespace stela
