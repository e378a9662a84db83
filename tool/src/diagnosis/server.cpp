// Findings about a PostgreSQL server that answers and takes writes.
#include "cli/text.hpp"
#include "commands/server_measures.hpp"
#include "diagnosis/findings.hpp"

namespace stela::tool {

void judge_server(const postgres::ServerStatus& server, const Facts& facts, Findings& findings) {
  // Another finding already says that no primary answers.
  if (server.is_standby && facts.store_problem.empty()) {
    findings.add(
        {.code = Code::database_standby,
         .trouble = "a standby",
         .sentence = "database: it is a standby, which takes no writes",
         .remedy = "name the primary, too, to see how it is; what is said here may be old"});
  }
  for (const postgres::TableLock& lock : server.locks) {
    if (lock.age < long_lock && facts.unanswered.empty()) continue;
    findings.add(
        {.code = Code::database_locked,
         .subject = lock.table,
         .since = facts.at - lock.age,
         .trouble = "locked",
         .sentence = "table " + in_one_line(lock.table) + " is locked by " + in_one_line(lock.who) +
                     ", and nobody else can read or write it",
         .remedy = "end that transaction: SELECT pg_terminate_backend(the session's number)"});
  }
  for (const postgres::OpenTransaction& open : server.transactions) {
    if (open.age < long_transaction) continue;
    findings.add(
        {.code = Code::database_transaction,
         .subject = in_one_line(open.who),
         .since = facts.at - open.age,
         .trouble = "open for long",
         .sentence = "transaction: " + in_one_line(open.who) + " is open for " + in_words(open.age),
         .remedy = "end it: dead rows of the outbox stay until then"});
  }
  for (const postgres::StandbyStatus& standby : server.standbys) {
    if (!standby.lag || *standby.lag <= long_lag) continue;
    findings.add({.code = Code::standby_late,
                  .subject = standby.name,
                  .since = facts.at - *standby.lag,
                  .trouble = "late",
                  .sentence = "standby '" + in_one_line(standby.name) + "' is behind by " +
                              in_words(*standby.lag),
                  .remedy = "see its log, and the network to it; a synchronous one holds up "
                            "appends"});
  }
}

}  // namespace stela::tool
