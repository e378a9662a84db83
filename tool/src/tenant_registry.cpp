#include "tenant_registry.hpp"

#include "cli/command.hpp"
#include "cli/exit.hpp"

#include <stela/eventstore/detail/postgres_settings.hpp>
#include <stela/eventstore/detail/sqlite_settings.hpp>
#include <stela/framework/error.hpp>

#include <utility>

namespace stela::tool {
namespace {

const std::string& registry_in(const Settings& settings) {
  const std::string& registry = settings.text("tenants");
  if (!registry.empty()) return registry;
  throw Misuse{
      "which registry? Say --tenants REGISTRY, set STELA_TENANTS, or write tenants = \"REGISTRY\" "
      "into stela.toml"};
}

}  // namespace

Tenant settle_tenant(Settings& settings, const Arguments& arguments) {
  const std::string& name = settings.text("tenant");
  TenantsOptions options{.create = false, .most_open = 1};
  options.files.read_only = options.servers.read_only = true;
  Tenants tenants = open_tenants(registry_in(settings), options);
  const auto tenant = tenants.find(name);
  if (!tenant) {
    throw Exit{not_found, "there is no tenant '" + name + "'; 'tenants list' names them all"};
  }
  if (tenant->state >= TenantState::erasing) {
    throw Exit{not_found, "tenant '" + name + "' is no longer there (" +
                              std::string{to_string(tenant->state)} + " since " +
                              to_string(tenant->since) + ")"};
  }
  const std::string origin = "--tenant " + name;
  const std::string schema = tenants.schema_of(name);
  if (!arguments.has(db_option.name)) {
    settings.set("db", tenants.place_of(name), origin);
  } else if (schema.empty() || !is_on_server(settings.text("db"))) {
    throw Misuse{
        "--db and --tenant both name a database; beside --tenant, --db only says as which role a "
        "server is used: --db URL"};
  }
  if (!schema.empty()) settings.set("store.schema", schema, origin);
  if (const auto keys = tenants.keys_of(name); !keys.empty() && !settings.is_set("keys.store")) {
    settings.set("keys.store", keys, origin);
  }
  return *tenant;
}

bool serves_all_tenants(Invocation& call) {
  const Settings& settings = call.settings();
  const bool is_for_all = !settings.text("tenants").empty() && settings.text("tenant").empty() &&
                          !call.arguments.has(db_option.name);
  if (is_for_all || !call.arguments.has(label_option.name)) return is_for_all;
  throw Misuse{"--label is for work for all tenants: --tenants, without --tenant and --db"};
}

Tenants open_registry(Invocation& call, TenantsOptions options) {
  const Settings& settings = call.settings();
  settings.apply("store", sqlite::settings(), options.files);
  settings.apply("store", postgres::settings(), options.servers);
  options.who = call.operator_name();
  if (const auto& master = settings.text("keys.master"); !master.empty()) {
    options.master = key_file(master);
  }
  options.erasures = settings.text("keys.erasures");
  return open_tenants(registry_in(settings), options);
}

}  // namespace stela::tool
