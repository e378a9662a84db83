// What an engine implements, and a Store is a handle to.
#pragma once

#include "database/database.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>

namespace stela {

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Store::Core : public EventStore, public database::Database {
 public:
  using database::Database::attach;
  using database::Database::detach;
  using EventStore::attach;
  using EventStore::detach;

  virtual const Uuid& id() const noexcept = 0;
  Store& anchor() noexcept final { return anchor_; }

 private:
  Store anchor_{*this};
};

}  // namespace stela
