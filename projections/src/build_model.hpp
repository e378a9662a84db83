// The read model of a build, on the engine that its tables use.
#pragma once

#include "builds.hpp"
#include "create_statements.hpp"
#include "database/connection.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/projections/projector.hpp>

#include <exception>
#include <memory>

namespace stela::projections {

/// Threads: inside the writer's transactions only; it may be destroyed inside or outside of them.
class BuildModel : public ReadModel {
 public:
  /// While true, tables may be created.
  virtual void allow_creation(bool allowed) noexcept = 0;

  /// The statements that `create` ran.
  const CreateStatements& created() const noexcept { return created_; }

  /// A failure of the database, not of the projector. It is kept when a statement throws it,
  /// because the projector's own code may wrap or swallow it.
  virtual std::exception_ptr take_store_failure() noexcept = 0;

  /// Runs `work`, which calls the projector, in the open transaction of `connection`. If a failed
  /// statement spoils the transaction, `work` runs again from the same rows, with each statement
  /// allowed to fail on its own.
  virtual void attempt(database::Connection& connection, FunctionRef<void()> work) = 0;

 protected:
  CreateStatements created_;
};

/// UsageError if the store's engine doesn't support projections.
std::unique_ptr<BuildModel> make_model(Store& store, const Build& build);

}  // namespace stela::projections
