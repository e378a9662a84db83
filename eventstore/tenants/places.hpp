// What stands at the places of tenants, whether or not the registry knows it.
#pragma once

#include "tenants/names.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/detail/function_ref.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tenants {

inline std::string schema_of(std::string_view tenant) {
  return "tenant_" + std::string{tenant};
}

/// The schema for a tenant's own SQL.
inline std::string sql_schema_of(std::string_view tenant) {
  return schema_of(tenant) + "_app";
}

/// A name that may be a tenant's, by the place where something stands.
std::vector<std::string> names_at(const Pattern& stores);
std::vector<std::string> names_on_server(const std::string& conninfo);
bool has_store(const Pattern& stores, std::string_view tenant);

/// What changes whenever a store is written to. All zero: there is none, or it can't be told.
using Stamp = std::array<std::int64_t, 3>;

/// Looks at many stores at once, without opening them. Threads: one at a time.
class Activity {
 public:
  virtual ~Activity() = default;
  /// A stamp for each name, in their order. StoreBusy or StoreFailed if a server doesn't answer.
  virtual std::vector<Stamp> look(std::span<const std::string> tenants) = 0;
};

std::unique_ptr<Activity> watch_activity(const Pattern& stores);
std::unique_ptr<Activity> watch_server(const std::string& conninfo);

struct Schemas {
  bool has_store = false;
  bool has_own_sql = false;
  /// Also those of its read models.
  bool may_drop = false;
};
/// Which of a tenant's schemas exist. SchemaMismatch if the first has something in it and isn't a
/// store, or if the one for own SQL isn't noted as this tenant's and has something in it.
Schemas check_schemas(const std::string& conninfo, std::string_view tenant);
/// Drops both and those of its read models, with what is in them.
void remove_schemas(const std::string& conninfo, std::string_view tenant);
/// Tells a store's server from those where a dump of it was restored.
std::string name_of_server(Store& store);

}  // namespace stela::tenants
