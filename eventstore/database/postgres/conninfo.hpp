// PostgreSQL connection strings: which servers they name, and how to connect to each.
#pragma once

#include "database/postgres/connection.hpp"

#include <string>
#include <vector>

namespace stela::postgres {

/// One host of a connection string.
struct Host {
  std::string name;
  std::string address;
  std::string port;
};

/// The hosts, if there are several. Once a host accepts a connection and then closes it, as a proxy
/// without a server does, libpq tries no other host; so each is tried by itself. A preference needs
/// all of them. UsageError if it isn't a connection string, or if its password might be shown.
std::vector<Host> hosts_of(const std::string& conninfo);

/// Whether it says which kind of server it wants.
bool names_its_target(const std::string& conninfo);

/// Keywords with their values, as libpq takes them: later ones win.
struct Keywords {
  std::vector<std::string> texts;
  std::vector<const char*> names;
  std::vector<const char*> values;
};

/// `which` is the kind of server, unless the user's string names one. Null: the string's hosts.
Keywords keywords_of(const ConnectionOptions& options, const Host* host, const char* which);

}  // namespace stela::postgres
