// Schemas of a tenant, and of others beside them.
#include "support/key_place.hpp"
#include "support/postgres_server.hpp"
#include "support/temp_dir.hpp"
#include "tenants/customers.hpp"

#include <stela/projections/tenant_runner.hpp>
#include <stela/tenants.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace stela::tenants_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

using namespace std::chrono_literals;

class ErasureOnAServer : public ::testing::Test {
 protected:
  void run(const std::string& sql) { test::run_at(url, sql); }
  bool has_schema(const std::string& name) {
    return test::run_at(url, "SELECT to_regnamespace('" + name + "') IS NOT NULL")[0] == "t";
  }
  void make_and_drop() {
    tenants.create("acme");
    tenants.drop("acme", "left", 0s);
  }

  test::PostgresServer server;
  std::string url = server.url();
  Tenants tenants = open_tenants(url, {.at = url});
};

TEST_F(ErasureOnAServer, TakesBothSchemas) {
  make_and_drop();
  run("CREATE TABLE tenant_acme_app.sales (total bigint)");
  tenants.erase("acme");
  EXPECT_FALSE(has_schema("tenant_acme"));
  EXPECT_FALSE(has_schema("tenant_acme_app"));
}

/// Its schema's name is shortened for a tenant with the longest name.
struct LongNamed : test::Customers {
  static constexpr ProjectorType projector_type{"customers_by_their_names", 1};
};

TEST_F(ErasureOnAServer, TakesReadModels) {
  const std::string longest(39, 'x');
  const std::vector<std::string> names{"acme", longest, longest.substr(1)};
  const auto schemas_like = [&](const std::string& pattern) {
    return test::run_at(url,
                        "SELECT nspname FROM pg_namespace WHERE nspname LIKE '" + pattern + "'");
  };
  {
    TenantRunner runner{tenants, [](Projections& all) { all.add(LongNamed{}); }};
    for (const std::string& name : names) {
      tenants.create(name);
      test::place_order(*tenants.use(name), "1", "jane");
    }
    runner.run_once();
    EXPECT_THAT(runner.standing().troubles, IsEmpty());
  }
  EXPECT_THAT(schemas_like("tenant_" + longest + "~%"), SizeIs(1));
  for (const char* const name : {"acme", longest.c_str()}) {
    tenants.drop(name, "left", 0s);
    tenants.erase(name);
  }
  EXPECT_THAT(schemas_like("tenant_acme%"), IsEmpty());
  EXPECT_THAT(schemas_like("tenant_" + longest + "%"), IsEmpty());
  EXPECT_THAT(schemas_like("tenant_%"), SizeIs(3)) << "the third one's";
}

TEST_F(ErasureOnAServer, OfACloneLeavesTheOriginalsKeys) {
  const test::TempDir dir;
  const std::string keys = dir.file("keys/{tenant}/keys");
  run("CREATE DATABASE shop");
  {
    Tenants original = open_tenants(server.url("shop"), {.at = server.url("shop"), .keys = keys});
    original.create("acme");
    original.drop("acme", "left", 0s);
  }
  server.dump("shop", server.folder() + "/dump");
  const std::string own = test::run_at(url, "SELECT system_identifier FROM pg_control_system()")[0];
  test::PostgresServer second;
  test::run_at(second.url(), "CREATE DATABASE shop");
  second.replace_by_dump("shop", server.folder() + "/dump");
  EXPECT_THAT([&] { open_tenants(second.url("shop")).erase("acme"); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("doesn't destroy the original's keys"),
                                              HasSubstr("server " + own))));
  EXPECT_EQ(open_tenants(server.url("shop")).erase("acme").state, TenantState::erased);
  EXPECT_FALSE(std::filesystem::exists(dir.file("keys/acme")));
}

TEST_F(ErasureOnAServer, IsNotOfASchemaThatIsShared) {
  for (const char* const schema : {"reports", ""}) {
    EXPECT_THAT([&] { open_tenants(url, {.servers = {.sql_schema = schema}}); },
                ThrowsMessage<UsageError>(HasSubstr("servers.sql_schema")));
  }
  postgres::open(url, {.schema = "tenant_acme", .sql_schema = "reports"});
  test::place_order(*std::make_unique<Store>(postgres::open(url, {.schema = "tenant_acme"})), "1",
                    "jane");
  EXPECT_THAT([&] { tenants.adopt("acme"); }, ThrowsMessage<UsageError>(HasSubstr("is 'reports'")));
  EXPECT_FALSE(tenants.find("acme"));
}

TEST_F(ErasureOnAServer, LeavesASchemaThatIsNoStore) {
  make_and_drop();
  run("ALTER SCHEMA tenant_acme RENAME TO away; CREATE SCHEMA tenant_acme; "
      "CREATE FUNCTION tenant_acme.precious() RETURNS int LANGUAGE sql AS 'SELECT 1'");
  for (const bool is_lost : {false, true}) {
    EXPECT_THAT([&] { tenants.erase("acme", is_lost); },
                ThrowsMessage<SchemaMismatch>(AllOf(HasSubstr("isn't a store"),
                                                    HasSubstr("function tenant_acme.precious()"))));
  }
  run("DROP SCHEMA tenant_acme CASCADE");
  EXPECT_THAT(
      [&] { tenants.erase("acme"); },
      ThrowsMessage<StoreFailed>(HasSubstr("schema 'tenant_acme', of tenant 'acme' is missing")));
  EXPECT_EQ(tenants.find("acme")->state, TenantState::dropped);
  run("ALTER SCHEMA away RENAME TO tenant_acme");
  tenants.erase("acme");
  EXPECT_FALSE(has_schema("tenant_acme"));
}

TEST_F(ErasureOnAServer, LeavesAnothersSchemaForOwnSql) {
  make_and_drop();
  run("DROP SCHEMA tenant_acme_app; CREATE SCHEMA tenant_acme_app; "
      "CREATE TABLE tenant_acme_app.precious (n int)");
  EXPECT_THAT([&] { tenants.erase("acme"); },
              ThrowsMessage<SchemaMismatch>(HasSubstr("table tenant_acme_app.precious")));
  EXPECT_TRUE(has_schema("tenant_acme"));
  // As the message says.
  run("COMMENT ON SCHEMA tenant_acme_app IS 'SQL beside the Stela store in schema tenant_acme'");
  tenants.erase("acme");
  EXPECT_FALSE(has_schema("tenant_acme_app"));
}

TEST_F(ErasureOnAServer, IsRefusedWhileTheSchemaForOwnSqlIsMissing) {
  make_and_drop();
  run("ALTER SCHEMA tenant_acme_app RENAME TO away");
  EXPECT_THAT([&] { tenants.erase("acme"); }, ThrowsMessage<StoreFailed>(HasSubstr("for own SQL")));
  EXPECT_TRUE(has_schema("tenant_acme"));
  tenants.erase("acme", true);
  EXPECT_FALSE(has_schema("tenant_acme"));
}

TEST_F(ErasureOnAServer, IsNoDangerForASchemaThatWasThereBefore) {
  run("CREATE SCHEMA tenant_acme_app; CREATE TABLE tenant_acme_app.precious (n int)");
  EXPECT_THAT([&] { tenants.create("acme"); },
              ThrowsMessage<SchemaMismatch>(
                  HasSubstr("COMMENT ON SCHEMA tenant_acme_app IS 'SQL beside the Stela store in "
                            "schema tenant_acme'")));
  EXPECT_FALSE(tenants.find("acme"));
  EXPECT_FALSE(has_schema("tenant_acme"));
}

TEST_F(ErasureOnAServer, IsRefusedToWhoDoesntOwnTheSchemas) {
  make_and_drop();
  run("CREATE ROLE app LOGIN; GRANT pg_read_all_data, pg_write_all_data TO app");
  Tenants others = open_tenants(server.url("postgres", "app"));
  EXPECT_THAT([&] { others.erase("acme"); },
              ThrowsMessage<StoreFailed>(HasSubstr("erase it as their owner")));
  EXPECT_EQ(tenants.find("acme")->state, TenantState::dropped);
}

TEST_F(ErasureOnAServer, IsOfACopyAlone) {
  make_and_drop();
  { const Tenants closed = std::move(tenants); }
  run("CREATE DATABASE copy");
  server.dump("postgres", server.folder() + "/dump");
  server.replace_by_dump("copy", server.folder() + "/dump");
  open_tenants(server.url("copy")).erase("acme");
  EXPECT_TRUE(has_schema("tenant_acme")) << "that of the original";
  EXPECT_EQ(open_tenants(url).find("acme")->state, TenantState::dropped);
}

TEST_F(ErasureOnAServer, IsAlsoOfARegistryInAFile) {
  const test::TempDir dir;
  Tenants others = open_tenants(dir.file("all.db"), {.at = url});
  others.create("globex");
  EXPECT_EQ(others.use("globex")->last_sequence(), GlobalSequence{0});
  run("CREATE DATABASE other");
  EXPECT_THAT([&] { open_tenants(server.url("other"), {.at = url, .keys = "keys/{tenant}/keys"}); },
              ThrowsMessage<UsageError>(HasSubstr("must begin with '/'")));
}

}  // namespace
}  // namespace stela::tenants_test
