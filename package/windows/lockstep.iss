; Installer for Windows of the folder that tools/installation/bundle.py builds, for Inno Setup 6.3 or newer. Silent:
;   lockstep-VERSION-windows-amd64.exe /VERYSILENT /SUPPRESSMSGBOXES /NORESTART [/ALLUSERS] [/DIR=FOLDER]
#ifndef Version
  #error Pass /DVersion=, the version, and /DBundle=, the folder
#endif

[Setup]
AppId=lockstep-gpu
AppName=Lockstep
AppVersion={#Version}
AppPublisher=Lockstep contributors
DefaultDirName={autopf}\Lockstep
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog commandline
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
LicenseFile={#Bundle}\LICENSE
ChangesAssociations=yes
Compression=lzma2/normal
LZMANumBlockThreads=4
SolidCompression=yes

[Files]
Source: "{#Bundle}\*"; DestDir: "{app}"; Flags: recursesubdirs

[Icons]
Name: "{autoprograms}\Lockstep"; Filename: "{app}\python\pythonw.exe"; Parameters: "-m lockstep"

[Registry]
Root: HKA; Subkey: "Software\Classes\.lockstep\OpenWithProgids"; ValueType: string; ValueName: "Lockstep.recording"; ValueData: ""; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\.trace\OpenWithProgids"; ValueType: string; ValueName: "Lockstep.recording"; ValueData: ""; Flags: uninsdeletevalue
Root: HKA; Subkey: "Software\Classes\Lockstep.recording"; ValueType: string; ValueData: "Lockstep recording"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\Lockstep.recording\shell\open\command"; ValueType: string; ValueData: """{app}\python\pythonw.exe"" -m lockstep ""%1"""
