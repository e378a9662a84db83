// Connection strings of PostgreSQL's: which servers they name, and how to connect to one of them.
#pragma once

#include "database/postgres/connection.hpp"

#include <string>
#include <vector>

namespace stela::postgres {

/// One of the hosts that a connection string names.
struct Host {
  std::string name;
  std::string address;
  std::string port;
};

/// If there are several. libpq asks no other host once one has taken the connection and ends it, as
/// a proxy does whose server is gone; so each is asked by itself. A preference needs all of them.
/// UsageError if it isn't a connection string, or one whose password might be shown.
std::vector<Host> hosts_of(const std::string& conninfo);

/// Whether it says which of the servers it wants.
bool names_its_target(const std::string& conninfo);

/// Keywords with their values, as libpq takes them: later ones count.
struct Keywords {
  std::vector<std::string> texts;
  std::vector<const char*> names;
  std::vector<const char*> values;
};

/// `which` of the servers, unless the user's string says so. Null: the hosts of the string.
Keywords keywords_of(const ConnectionOptions& options, const Host* host, const char* which);

}  // namespace stela::postgres
