// The read model of a build, on whichever engine its tables are.
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

/// Threads: inside the writer's transactions only; it is destroyed outside of them or inside.
class BuildModel : public ReadModel {
 public:
  /// While true, tables may be made.
  virtual void allow_creation(bool allowed) noexcept = 0;

  /// What `create` has run.
  const CreateStatements& created() const noexcept { return created_; }

  /// What made the database fail, not the projector: set aside when a statement throws it, since
  /// the projector's own code may have wrapped or swallowed it.
  virtual std::exception_ptr take_store_failure() noexcept = 0;

  /// Runs `work`, which calls the projector, in the open transaction of `connection`. Where a
  /// statement that failed spoils the transaction, `work` runs again from the same rows, and so
  /// that each statement may fail by itself.
  virtual void attempt(database::Connection& connection, FunctionRef<void()> work) = 0;

 protected:
  CreateStatements created_;
};

/// UsageError if projections don't work on the store's engine.
std::unique_ptr<BuildModel> make_model(Store& store, const Build& build);

}  // namespace stela::projections
