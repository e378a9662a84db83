// Faults on purpose in the database's own function that appends one event.
#pragma once

#include "support/postgres_server.hpp"

#include <stdexcept>
#include <string>

namespace stela::postgres {

/// Puts `fault` in the place of `rule`, wherever stela.append_one has it. Throws if it doesn't.
inline void break_append_one(const test::PostgresServer& server, const std::string& rule,
                             const std::string& fault) {
  const std::string function =
      "(SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p WHERE p.proname = 'append_one')";
  const auto quoted = [](const std::string& text) { return "$text$" + text + "$text$"; };
  if (server.ask("SELECT strpos(" + function + ", " + quoted(rule) + ") > 0") != "t") {
    throw std::logic_error{"append_one has no: " + rule};
  }
  server.ask("DO $do$ BEGIN EXECUTE replace(" + function + ", " + quoted(rule) + ", " +
             quoted(fault) + "); END $do$");
}

}  // namespace stela::postgres
