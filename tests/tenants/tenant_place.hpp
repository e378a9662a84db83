// A registry of tenants and their stores, on the engine of this test run.
#pragma once

#include "support/engine.hpp"
#include "support/key_place.hpp"
#include "support/temp_dir.hpp"

#include <stela/tenants.hpp>

#include <string>

namespace stela::test {

struct TenantPlace {
  TempDir dir = TempDir::in_memory();
  std::string registry = is_on_postgres() ? database_at(dir.file("all")) : dir.file("tenants.db");
  std::string at = is_on_postgres() ? registry : "data/{tenant}.db";

  Tenants open(TenantsOptions options = {}) const {
    if (!options.at) options.at = at;
    return open_tenants(registry, options);
  }
};

}  // namespace stela::test
