// A connection to PostgreSQL: runs single statements, or several in one round trip.
#pragma once

#include "database/connection.hpp"
#include "database/owner.hpp"
#include "database/postgres/failure.hpp"
#include "database/postgres/named_rows.hpp"
#include "database/postgres/parameters.hpp"
#include "database/postgres/prepared_texts.hpp"
#include "database/postgres/result.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/postgres.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela::postgres {

struct ConnectionOptions {
  /// In PostgreSQL's form: "postgresql://app@db1,db2/shop", "host=… dbname=…".
  std::string conninfo = {};
  /// The schema of Stela's tables.
  std::string schema = "stela";
  /// Where the user's SQL creates its tables; empty: where the search_path says.
  std::string sql_schema = {};
  /// For each host.
  std::chrono::milliseconds connect_timeout{5000};
  /// The connection counts as lost after the server has been silent for this long.
  std::chrono::milliseconds reply_timeout{30000};
  /// How long to retry, with growing pauses, when a server that was reached before can't be: it may
  /// be restarting, or a standby being promoted.
  std::chrono::milliseconds patience{0};
  /// Of several hosts, accepts a standby if there is no primary. Otherwise only the primary. The
  /// connection string may override both.
  bool is_read_only = false;
  /// Behind a pooler that reassigns sessions after each transaction: statements aren't prepared,
  /// and session settings aren't used.
  bool is_pooled = false;
  /// Set once foreign SQL has dropped a prepared statement, or prepared one of the same name. From
  /// then on no connection with a copy of these options prepares anything.
  std::shared_ptr<std::atomic<bool>> prepares_nothing = std::make_shared<std::atomic<bool>>(false);
};

class Statement;

/// Failures are thrown as exceptions that say what to do. Every wait is bounded, except for a
/// hanging name resolver. In a forked child every call is a UsageError.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Connection final : public database::Connection {
 public:
  /// StoreFailed if the server refuses the user, is too old, or its encoding isn't UTF-8; StoreBusy
  /// if it can't be reached, or has no free connection.
  explicit Connection(const ConnectionOptions& options);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs one statement, whose parameters are written $1, $2 … It names tables by "stela.".
  /// Prepared from the second run on.
  Result query(std::string_view sql, Parameters parameters = {},
               std::string_view doing = "a statement");

  /// Runs one of PostgreSQL's own statements, which .sql files define, in the same way. Returns how
  /// many rows it changed or gave.
  template <class Named>
  std::int64_t run(const Named& statement, std::string_view doing = Named::doing) {
    return query(Named::sql, statement.parameters(), doing).changes();
  }
  /// The same, but returns the rows: `while (rows.step()) use(rows.sequence());`
  template <class Named>
  typename Named::Row rows(const Named& statement, std::string_view doing = Named::doing) {
    return typename Named::Row{query(Named::sql, statement.parameters(), doing)};
  }
  /// The same for a statement that always gives a row, which it returns.
  template <class Named>
  typename Named::Row row(const Named& statement, std::string_view doing = Named::doing) {
    auto first = rows(statement, doing);
    first.step();
    return first;
  }

  /// Several statements in one round trip. After a failed statement, the later ones don't run.
  class STELA_EVENTSTORE_EXPORT Pipeline {
   public:
    explicit Pipeline(Connection& connection) noexcept : connection_{connection} {}
    /// `sql` and the data that the parameters refer to must outlive `run`.
    void add(std::string_view sql, Parameters parameters = {}) {
      steps_.push_back({sql, std::move(parameters), false});
    }
    /// Adds a statement from a .sql file.
    template <class Named>
    requires requires { Named::sql; }
    Place<Named> add(const Named& statement) {
      add(Named::sql, statement.parameters());
      return {size() - 1};
    }
    /// Adds a statement of the user's, as `query_text`.
    void add_user(std::string_view sql, Parameters parameters) {
      steps_.push_back({sql, std::move(parameters), true});
    }
    std::size_t size() const noexcept { return steps_.size(); }
    /// Later steps form another part: the server commits and answers the first part before it
    /// begins the second.
    void end_part() { end_of_first_ = steps_.size(); }
    /// Sends all steps, and returns the results of the first part in order, including an error and
    /// the aborted steps after it. ConnectionLost if the answers don't come. If there is another
    /// part, the connection is busy until `run_rest` has returned.
    std::vector<Result> run();
    /// The same, but throws the first error. If there is another part, it then gives up the
    /// connection, because nobody reads the rest of the answers.
    std::vector<Result> run_all(std::string_view doing);
    /// Waits for the second part, and throws its first error.
    void run_rest(std::string_view doing);

   private:
    struct Step {
      std::string_view sql;
      Parameters parameters;
      bool is_users;
      /// Null for a step that isn't prepared.
      PreparedTexts::Text* text = nullptr;
      bool is_new = false;
    };
    /// Sends the step, after its preparation if it has one.
    void send(Step& step);
    bool has_rest() const noexcept { return end_of_first_ < steps_.size(); }
    std::span<Step> first_part() noexcept {
      return std::span{steps_}.first(std::min(end_of_first_, steps_.size()));
    }
    /// One result for each step of a part. `others` is the number of further results, which come
    /// last.
    std::vector<Result> read(std::span<Step> part, std::size_t others);
    /// Removes the results of preparations from `results`.
    std::vector<Result> results_of_steps(std::span<Step> part, std::vector<Result> results);

    Connection& connection_;
    std::vector<Step> steps_;
    std::size_t end_of_first_ = std::numeric_limits<std::size_t>::max();
  };

  /// Runs a text without parameters, perhaps of several statements.
  void execute(const std::string& sql) override;
  /// Runs one statement of the user's; its rows come as text. Prepared from the second run on,
  /// unless `scope`, the search_path that resolves its names, is empty. The result may be an error.
  Result query_users(const std::string& sql, std::string_view scope, Parameters parameters);
  /// Runs one statement of the user's; its rows come as text.
  Result query_text(const std::string& sql, Parameters parameters);

  database::DatabaseName database() const noexcept override { return {nullptr, place_}; }
  bool in_transaction() const noexcept override;
  Uuid run() const noexcept override { return run_; }
  void set_run(const Uuid& run) noexcept { run_ = run; }
  /// Ends the transaction, if there is one. A failure ends the connection.
  void roll_back() noexcept;
  /// Throws the exception for `result`, an error that ended `doing`.
  [[noreturn]] void fail(const PGresult* result, std::string_view doing);
  /// False once it is lost.
  bool is_usable() const noexcept { return !is_lost_ && owner_.is_this(); }
  /// Checks, without a round trip, whether the server closed the idle connection. If so, it returns
  /// false, and the connection is lost.
  bool is_alive() noexcept;
  /// Marks the connection as lost.
  void give_up() noexcept { is_lost_ = true; }

  using Time = std::chrono::steady_clock::time_point;
  /// Is told when the server doesn't answer.
  class Silence {
   public:
    virtual ~Silence() = default;
    /// Returns the time of the next call. The connection is lost if it has passed. `deadline` is
    /// when it would be lost without a Silence.
    virtual Time wait_until(Time deadline) = 0;
  };
  /// Null for none. It must outlive the connection's waits until this is called again.
  void tell_of_silence(Silence* silence) noexcept { silence_ = silence; }
  /// Asks the server, over another connection, to cancel the running statement, which is then
  /// answered, perhaps with an error.
  void cancel() noexcept;

  /// The server's warnings since the last call.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  /// The search_path of the user's SQL: its own schema, then those of the connection's original
  /// search_path, without Stela's.
  const std::string& users_path() const noexcept { return users_path_; }
  void set_users_path(std::string path) { users_path_ = std::move(path); }
  /// The user's SQL has run in the transaction: its session settings may outlive it.
  bool ran_users_sql() const noexcept { return ran_users_sql_; }
  void note_users_sql(bool ran) noexcept { ran_users_sql_ = ran; }
  /// True for a server that replays another server's log.
  bool is_standby() const noexcept;
  const ConnectionOptions& options() const noexcept { return options_; }
  /// Facts that a store's first connection finds out for all of them.
  void learn(bool is_pooled, std::string sql_schema) {
    options_.is_pooled = is_pooled;
    options_.sql_schema = std::move(sql_schema);
  }
  PGconn* handle() const noexcept { return connection_.get(); }

 private:
  friend class Statement;
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  void check_server() const;
  /// UsageError if foreign SQL has changed the encoding, which would corrupt stored names.
  void check_encoding() const;
  /// Called before anything is sent: returns the deadline of the answer.
  Time begin();
  void send(std::string_view sql, Parameters& parameters);
  /// Sends a statement of the user's; its rows come as text.
  void send_user(const std::string& sql, Parameters& parameters);
  void send_prepared(const std::string& name, Parameters& parameters, bool as_text = false);
  void send_prepare(const std::string& name, const std::string& sql, const std::vector<Oid>& types);
  bool may_prepare() const noexcept { return !options_.is_pooled && !*options_.prepares_nothing; }
  /// Sends statements that make the server drop prepared ones, and returns their number.
  std::size_t send_dropped(const PreparedTexts& texts);
  /// The prepared form of one of Stela's own statements; null if there is none yet. It is prepared
  /// again from time to time: a plan from when a table was small reads the entire table.
  PreparedTexts::Text* own_text(std::string_view sql, const Parameters& parameters, Time now);
  /// Forgets prepared statements that are no longer valid.
  void note_failure(const Result& failed, const PreparedTexts::Text* text = nullptr);
  /// Sends data that libpq still holds back, and reads meanwhile.
  void flush(Time deadline);
  void wait(short events, Time deadline);
  /// The next result; none at the end of a statement.
  Result next(Time deadline);
  /// The only result of the statement that was sent.
  Result finish(std::string_view doing, const PreparedTexts::Text* text = nullptr);
  /// The results up to the next Sync of a pipeline, followed by the error of the commit there, if
  /// it failed.
  std::vector<Result> finish_part(std::size_t count);
  std::vector<Result> finish_pipeline(std::size_t count);
  void prepare(const std::string& name, std::string_view sql, const std::vector<Oid>& types);
  [[noreturn]] void lose(std::string why);
  database::Statement& prepared(std::string_view, std::string_view sql) override;
  static void note(void* self, const PGresult* result) noexcept;

  const database::OwningProcess owner_;
  ConnectionOptions options_;
  const std::string place_;
  std::unique_ptr<PGconn, Finish> connection_;
  bool is_lost_ = false;
  Silence* silence_ = nullptr;
  Uuid run_ = {};
  int names_ = 0;
  bool has_prepared_ = false;
  std::vector<std::string> warnings_;
  std::string users_path_;
  bool ran_users_sql_ = false;
  std::unordered_map<const char*, std::unique_ptr<Statement>> statements_;
  PreparedTexts own_texts_{"stela_own_"};
  PreparedTexts users_texts_{"stela_user_"};
};

/// The search_path of Stela's own statements.
STELA_EVENTSTORE_EXPORT std::string own_path(std::string_view schema);

/// Casts `connection` to a PostgreSQL connection: for code of this engine.
inline Connection& connection_of(database::Connection& connection) noexcept {
  return static_cast<Connection&>(connection);
}

}  // namespace stela::postgres
