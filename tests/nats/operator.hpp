// An operator, an account and a user of NATS's decentralised authentication, made for these tests:
// they open nothing but a server that trusts this operator.
#pragma once

#include <string>

namespace stela::test {

inline const std::string operator_jwt =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJpYXQiOjE3NjM0NjQwMDAsImlzcyI6Ik9DW"
    "k5JUUJIVUJGUDVRSFdGUENKU1hCRFdYNlNFWTRPNUJZR09FNDQ2REhSVE9VNk1GQkJDNFo3IiwibmFtZSI6I"
    "nN0ZWxhIiwic3ViIjoiT0NaTklRQkhVQkZQNVFIV0ZQQ0pTWEJEV1g2U0VZNE81QllHT0U0NDZESFJUT1U2T"
    "UZCQkM0WjciLCJuYXRzIjp7InR5cGUiOiJvcGVyYXRvciIsInZlcnNpb24iOjJ9LCJqdGkiOiJZT0RXM0VYM"
    "lVCQzVCU09XN05VQTZDRjJERjZKREhWNktTVU82TVhLR0hNSFZPU0ZOQjZBIn0.XC8NFlpFn7QLJi66MCvc8"
    "2E4LQmn6hSInzP1BwkGvOtFZU9BbqHOc2vNMU_3IaXoEnKkNFRHHx3OiKtWFwSvBA";

inline const std::string account_key = "ACODSTQCMPQJXC5JMKSTJDGTFJK3HMQAC2U4JPGSHBXPPG7DS3NDMA6S";
inline const std::string account_jwt =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJpYXQiOjE3NjM0NjQwMDAsImlzcyI6Ik9DW"
    "k5JUUJIVUJGUDVRSFdGUENKU1hCRFdYNlNFWTRPNUJZR09FNDQ2REhSVE9VNk1GQkJDNFo3IiwibmFtZSI6I"
    "nNob3AiLCJzdWIiOiJBQ09EU1RRQ01QUUpYQzVKTUtTVEpER1RGSkszSE1RQUMyVTRKUEdTSEJYUFBHN0RTM"
    "05ETUE2UyIsIm5hdHMiOnsibGltaXRzIjp7InN1YnMiOi0xLCJkYXRhIjotMSwicGF5bG9hZCI6LTEsImltc"
    "G9ydHMiOi0xLCJleHBvcnRzIjotMSwid2lsZGNhcmRzIjp0cnVlLCJjb25uIjotMSwibGVhZiI6LTEsIm1lb"
    "V9zdG9yYWdlIjotMSwiZGlza19zdG9yYWdlIjotMSwic3RyZWFtcyI6LTEsImNvbnN1bWVyIjotMX0sImRlZ"
    "mF1bHRfcGVybWlzc2lvbnMiOnsicHViIjp7fSwic3ViIjp7fX0sInR5cGUiOiJhY2NvdW50IiwidmVyc2lvb"
    "iI6Mn0sImp0aSI6IlVYWTVXWlVYNEdWWUdBNEhLTE42R0YzWUFRSkhLUUtEVERCWk5RSDNBWlNIRlNHTEtBS"
    "FEifQ.bSqD5vIWeYkTcxAbd7besCfAiJAUfhU9epTvCDLjEPOOPuEuGT3DrViYVd6KFQPNrTWCcCAdgt_nG_"
    "bx-VYUDw";

/// JetStream wants one.
inline const std::string system_key = "AAKGKRKZPQQPO5PZCFZI4EAPXPO3ZB2I27Y6J6TEIRG3F4PA3NOYT6E2";
inline const std::string system_jwt =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJpYXQiOjE3NjM0NjQwMDAsImlzcyI6Ik9DW"
    "k5JUUJIVUJGUDVRSFdGUENKU1hCRFdYNlNFWTRPNUJZR09FNDQ2REhSVE9VNk1GQkJDNFo3IiwibmFtZSI6I"
    "lNZUyIsInN1YiI6IkFBS0dLUktaUFFRUE81UFpDRlpJNEVBUFhQTzNaQjJJMjdZNko2VEVJUkczRjRQQTNOT"
    "1lUNkUyIiwibmF0cyI6eyJsaW1pdHMiOnsic3VicyI6LTEsImRhdGEiOi0xLCJwYXlsb2FkIjotMSwiaW1wb"
    "3J0cyI6LTEsImV4cG9ydHMiOi0xLCJ3aWxkY2FyZHMiOnRydWUsImNvbm4iOi0xLCJsZWFmIjotMX0sImRlZ"
    "mF1bHRfcGVybWlzc2lvbnMiOnsicHViIjp7fSwic3ViIjp7fX0sInR5cGUiOiJhY2NvdW50IiwidmVyc2lvb"
    "iI6Mn0sImp0aSI6IjU3TTdYVURMNlg0WlRaVUROSFc3VUdBWUtBT1BMMkNWRERaS1RMTDdDU0NWSlJLSjZYQ"
    "1EifQ._0GKDUaDFOopECy2BgxKrwg8viUXomF-x8I7A50rjpQBfoGAX48jagx-m_xiBLo420CkC-Onsha3tG"
    "P7-nj6BQ";

inline const std::string user_jwt =
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.eyJpYXQiOjE3NjM0NjQwMDAsImlzcyI6IkFDT"
    "0RTVFFDTVBRSlhDNUpNS1NUSkRHVEZKSzNITVFBQzJVNEpQR1NIQlhQUEc3RFMzTkRNQTZTIiwibmFtZSI6I"
    "nJlbGF5Iiwic3ViIjoiVURVV0JSMkJDVFpGQUZOQTVUNlQ1M01NNTRaM1ZUUlNBMk5STzdRRUJPTzJaU1dMU"
    "1M3RlRZN1kiLCJuYXRzIjp7InB1YiI6e30sInN1YiI6e30sInN1YnMiOi0xLCJkYXRhIjotMSwicGF5bG9hZ"
    "CI6LTEsInR5cGUiOiJ1c2VyIiwidmVyc2lvbiI6Mn0sImp0aSI6IkNGUFAzU0tSRU0ySVlWNTRNVlhSNkpFW"
    "E9SUzVKUFBGNUpNRVo0NUhHTlhVNk1SNUdIWVEifQ.FaMNBWOmIanClgE1VbWPZ40M3Fgwl6XLRQ_kLRVQ0B"
    "kSEXzblQPfRXAKTKniZqMWSNOpGNel7oaufg4J3A_ABg";
inline const std::string user_seed = "SUAP2RC5MYM6KBSA3S3MNXNPBRC7HIHK2TXG6ICTMNPWR3S3ZJ74MVDZQU";

/// Of another user.
inline const std::string other_seed = "SUAP34BJLUNTPQ4DQVJF57EITMYPWAUOAOK2ENPILENDI3F5IDZR5KSWGE";

/// What a server that trusts the operator has in its configuration.
inline std::string operator_config() {
  return "operator: " + operator_jwt + "\nsystem_account: " + system_key +
         "\nresolver: MEMORY\nresolver_preload { " + system_key + ": " + system_jwt + ", " +
         account_key + ": " + account_jwt + " }\n";
}

/// The user's file, as nsc writes it.
inline std::string creds_file(const std::string& seed = user_seed) {
  return "-----BEGIN NATS USER JWT-----\n" + user_jwt +
         "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + seed +
         "\n------END USER NKEY SEED------\n";
}

}  // namespace stela::test
