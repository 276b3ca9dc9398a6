//! Lines around a word or a command, as consoles, journals and files have them.

/// Where a word of its own stands; `S` is the word.
pub(crate) const OF_WORDS: [(&str, &str); 12] = [
    ("alone", "S"),
    ("journal", "Nov 25 10:01:02 w-1 cloud-init[911]: using S for the registry"),
    ("assigned", "VALUE=S"),
    ("quoted", "got \"S\" from the metadata service"),
    ("single quotes", "pulling with 'S'"),
    ("json", "{\"x\":\"S\",\"y\":1}"),
    ("yaml", "x: S"),
    ("list", "- S"),
    ("url path", "GET https://api.example/v1/S/nodes 401"),
    ("user of a url", "git clone https://S@git.example/x.git"),
    ("argument", "install.sh --with S --wait"),
    ("brackets", "error (S): 401"),
];

/// Where a command is written; `C` is the command.
pub(crate) const OF_COMMANDS: [(&str, &str); 10] = [
    ("plain", "C"),
    ("prompt", "root@w-1:~# C"),
    ("trace", "+ C"),
    ("sudo", "sudo C"),
    ("cloud-init", "[   40.118201] cloud-init[1187]: + C"),
    ("journal", "Nov 25 10:01:02 w-1 bash[77]: C"),
    ("unit", "[Unit]\nDescription=x\n[Service]\nExecStartPre=C\nRestart=always\n"),
    ("runcmd", "runcmd:\n  - C\n  - systemctl start kubelet\n"),
    ("dockerfile", "RUN C"),
    ("chained", "set -e; cd /tmp && C && echo done"),
];
